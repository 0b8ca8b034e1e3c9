#include "pleat/core/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "pleat/core/copy.h"
#include "pleat/core/cuda.h"
#include "pleat/core/format.h"
#include "pleat/core/parallel.h"
#include "pleat/core/philox.h"

namespace pleat {
namespace {

constexpr int64_t grain = 8192;

__extension__ typedef unsigned __int128 uint128;  // an extension of every 64-bit gcc and clang

/// `word` scaled to [0, range): the high half of a 64 by 64 bit product, uniform up to a bias of range / 2^64.
uint64_t scale(uint64_t word, uint64_t range) { return static_cast<uint64_t>((uint128{word} * range) >> 64); }

/// Calls `write(i, words)` for the four random words of every element i: one counter an element keeps any slice of
/// the stream addressable, on any device.
template <class Write>
void for_each_element(int64_t n, Generator& generator, const Write& write) {
  const uint64_t seed = generator.seed();
  const uint64_t draw = generator.next_draw();
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) write(i, philox(seed, static_cast<uint64_t>(i), draw));
  });
}

/// Runs `generate` on a row-major tensor of the same shape on the CPU, which is `tensor` itself where possible.
template <class Generate>
void through_plain(const Tensor& tensor, const Generate& generate) {
  const bool direct = tensor.device().is_cpu() && tensor.is_contiguous() && !is_half(tensor.dtype());
  const DType type = compute_dtype(tensor.dtype());
  const Tensor plain = direct ? tensor : empty(tensor.shape(), {.dtype = type});
  generate(plain);
  if (direct) tensor.bump_version();
  else ops::copy_into(tensor, ops::cast(plain, tensor.dtype()));
}

void check_floating(const char* op, const Tensor& tensor) {
  check<DTypeError>(is_floating(tensor.dtype()), "{}: needs a floating type, got {}", op, tensor);
}

}  // namespace

Generator& default_generator() {
  thread_local Generator generator(0);
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().set_seed(seed); }

void fill_uniform_(const Tensor& tensor, double low, double high, Generator& generator) {
  check_floating("fill_uniform_", tensor);
  check<ValueError>(std::isfinite(low) && std::isfinite(high) && low <= high,
                    "fill_uniform_: needs low <= high, both finite, got {} and {}", low, high);
  through_plain(tensor, [&](const Tensor& plain) {
    if (plain.dtype() == float64) {
      double* out = plain.data<double>();
      for_each_element(plain.numel(), generator, [=](int64_t i, const std::array<uint32_t, 4>& words) {
        out[i] = low + (high - low) * unit_double(words[0], words[1]);
      });
    } else {
      float* out = plain.data<float>();
      const auto base = static_cast<float>(low);
      const auto range = static_cast<float>(high - low);
      for_each_element(plain.numel(), generator, [=](int64_t i, const std::array<uint32_t, 4>& words) {
        out[i] = base + range * unit_float(words[0]);
      });
    }
  });
}

void fill_normal_(const Tensor& tensor, double mean, double std, Generator& generator) {
  check_floating("fill_normal_", tensor);
  check<ValueError>(std::isfinite(mean) && std::isfinite(std) && std >= 0,
                    "fill_normal_: needs a finite mean and std >= 0, got {} and {}", mean, std);
  // Box-Muller: sqrt(-2 ln u) cos(2 pi v), with u in (0, 1].
  through_plain(tensor, [&](const Tensor& plain) {
    if (plain.dtype() == float64) {
      double* out = plain.data<double>();
      for_each_element(plain.numel(), generator, [=](int64_t i, const std::array<uint32_t, 4>& words) {
        const double radius = std::sqrt(-2 * std::log(1 - unit_double(words[0], words[1])));
        out[i] = mean + std * radius * std::cos(2 * std::numbers::pi * unit_double(words[2], words[3]));
      });
    } else {
      float* out = plain.data<float>();
      const auto centre = static_cast<float>(mean);
      const auto scale = static_cast<float>(std);
      for_each_element(plain.numel(), generator, [=](int64_t i, const std::array<uint32_t, 4>& words) {
        const float radius = std::sqrt(-2 * std::log(1 - unit_float(words[0])));
        out[i] = centre + scale * radius * std::cos(2 * std::numbers::pi_v<float> * unit_float(words[2]));
      });
    }
  });
}

Tensor rand(Shape shape, TensorOptions options, Generator& generator) {
  Tensor result = empty(std::move(shape), options);
  fill_uniform_(result, 0, 1, generator);
  return result;
}

Tensor randn(Shape shape, TensorOptions options, Generator& generator) {
  Tensor result = empty(std::move(shape), options);
  fill_normal_(result, 0, 1, generator);
  return result;
}

Tensor randint(int64_t low, int64_t high, Shape shape, Generator& generator) {
  check<ValueError>(low < high, "randint: needs low < high, got {} and {}", low, high);
  Tensor result = empty(std::move(shape), {.dtype = int64});
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  int64_t* out = result.data<int64_t>();
  for_each_element(result.numel(), generator, [=](int64_t i, const std::array<uint32_t, 4>& words) {
    const uint64_t word = (uint64_t{words[0]} << 32) | words[1];
    const uint64_t scaled = scale(word, range);
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(low) + scaled);
  });
  return result;
}

Tensor randperm(int64_t n, Generator& generator) {
  check<ValueError>(n >= 0, "randperm: n must not be negative, got {}", n);
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const uint64_t draw = generator.next_draw();
  for (int64_t i = n - 1; i > 0; --i) {  // Fisher-Yates
    const auto words = philox(generator.seed(), static_cast<uint64_t>(i), draw);
    const uint64_t word = (uint64_t{words[0]} << 32) | words[1];
    const auto j = static_cast<std::size_t>(scale(word, static_cast<uint64_t>(i + 1)));
    std::swap(order[static_cast<std::size_t>(i)], order[j]);
  }
  return from_vector(order);
}

Tensor bernoulli(double p, Shape shape, Device device, Generator& generator) {
  check<ValueError>(p >= 0 && p <= 1, "bernoulli: the probability must be in [0, 1], got {}", p);
  if (device.is_cuda()) cuda::check_device("bernoulli", device);
  Tensor result = empty(std::move(shape), {.dtype = boolean});
  bool* out = result.data<bool>();
  const int64_t n = result.numel();
  const uint64_t seed = generator.seed();
  const uint64_t draw = generator.next_draw();
  // Element i is word i % 4 of counter i / 4: masks are large, and 24 bits are enough to compare with p.
  const auto limit = static_cast<uint32_t>(std::ceil(p * 0x1p24));
  parallel_for(0, (n + 3) / 4, grain, [=](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const std::array<uint32_t, 4> words = philox(seed, static_cast<uint64_t>(block), draw);
      const int64_t end = std::min<int64_t>(4, n - 4 * block);
      for (int64_t j = 0; j < end; ++j) out[4 * block + j] = (words[static_cast<std::size_t>(j)] >> 8) < limit;
    }
  });
  return ops::to_device(result, device);
}

}  // namespace pleat
