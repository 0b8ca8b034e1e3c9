// Host and device.
#include "pleat/core/random/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/fork.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random_functors.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/core/tensor/journal.h"

namespace pleat {
namespace {

constexpr int64_t grain = 8192;

constexpr uint64_t golden = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio: odd

std::atomic<uint64_t> random_stream{0};

/// Of the latest manual_seed, and how many threads have drawn by it.
struct LatestSeed {
  ForkMutex<std::mutex> mutex;
  uint64_t seed = 0;
  uint64_t threads = 0;
};
LatestSeed& latest_seed() {
  static auto& latest = *new LatestSeed;
  return latest;
}

thread_local ThreadObject<std::optional<Generator>> thread_generator;

uint64_t seed_of_next_thread() {
  LatestSeed& latest = latest_seed();
  const std::lock_guard lock(latest.mutex);
  const uint64_t thread = latest.threads++;
  return thread == 0 ? latest.seed : mixed(latest.seed + thread * golden);
}

RandomDraw next_draw(const char* op, Generator& generator, Device device) {
  const uint64_t seed = detail::effective_seed(generator);
  if (Capture* capture = Capture::current()) {
    if (device.is_cpu())
      capture->refuse(op, "random numbers made on the CPU would be the same at each replay");
    const Capture::Draw draw = capture->next_draw(generator);
    return {seed, draw.number, draw.state};
  }
  return {seed, generator.next_draw()};
}

/// Fills a row-major tensor of the same shape, which is `tensor` itself where possible, with the functor that
/// `element` makes of (Type<T>, draw, elements) for elements of type T, drawn as Drawn<T>.
template <class F>
void fill_with(const char* op, const Tensor& tensor, Generator& generator, const F& element) {
  const bool direct = tensor.is_contiguous() && !is_half(tensor.dtype());
  const DType type = compute_dtype(tensor.dtype());
  const Tensor plain = direct ? tensor : empty(tensor.shape(), {.dtype = type, .device = tensor.device()});
  const RandomDraw random = next_draw(op, generator, tensor.device());
  if (direct) tensor.begin_write();
  dispatch(tensor.dtype(), [&]<class T>(Type<T> t) {
    if constexpr (is_floating(dtype_of<T>()))
      for_each_index(op, plain.device(), plain.numel(), element(t, random, plain.data<Drawn<T>>()), grain);
  });
  if (!direct) ops::copy_into(tensor, plain);
}

void check_floating(const char* op, const Tensor& tensor) {
  check<DTypeError>(is_floating(tensor.dtype()), "{}: needs a floating type, got {}", op, tensor);
}

}  // namespace

Generator::~Generator() { Journal::forget(state_); }

std::array<uint64_t, 2>& Generator::change() {
  Journal::note(state_);
  return state_;
}

Generator& default_generator() {
  std::optional<Generator>& own = *thread_generator;
  if (!own) own.emplace(seed_of_next_thread());
  return *own;
}

void set_random_stream(uint64_t stream) { random_stream = stream; }

uint64_t detail::effective_seed(const Generator& generator) {
  const std::optional<Generator>& own = *thread_generator;
  const bool is_default = own && &generator == &*own;
  // An odd factor: no two streams have the same seed.
  return generator.seed() ^ (is_default ? random_stream.load(std::memory_order_relaxed) : 0) * golden;
}

void manual_seed(uint64_t seed) {
  thread_generator->emplace(seed);
  LatestSeed& latest = latest_seed();
  const std::lock_guard lock(latest.mutex);
  latest.seed = seed;
  latest.threads = 1;
}

UseGenerator::UseGenerator(const Generator& generator) : before_(*thread_generator) {
  *thread_generator = generator;
}
UseGenerator::~UseGenerator() { *thread_generator = before_; }

void fill_uniform_(const Tensor& tensor, Real low, Real high, Generator& generator) {
  const RecordOp range("fill_uniform_", tensor);
  check_floating("fill_uniform_", tensor);
  check<ValueError>(std::isfinite(low) && std::isfinite(high - low) && low <= high,
                    "fill_uniform_: needs low <= high, finite and a finite distance apart, got {} and {}",
                    low, high);
  for (const double bound : {low, high}) check_fits("fill_uniform_", bound, tensor.dtype());
  check_fits("fill_uniform_", high - low, compute_dtype(tensor.dtype()));
  fill_with("fill_uniform_", tensor, generator, [&]<class T>(Type<T>, const RandomDraw& random, auto* out) {
    return uniform_element<T>(random, low, high, out);
  });
}

void fill_normal_(const Tensor& tensor, Real mean, Real std, Generator& generator) {
  const RecordOp range("fill_normal_", tensor);
  check_floating("fill_normal_", tensor);
  check<ValueError>(std::isfinite(mean) && std::isfinite(std) && std >= 0,
                    "fill_normal_: needs a finite mean and std >= 0, got {} and {}", mean, std);
  for (const double value : {mean, std}) check_fits("fill_normal_", value, tensor.dtype());
  fill_with("fill_normal_", tensor, generator, [&]<class T>(Type<T>, const RandomDraw& random, auto* out) {
    using D = Drawn<T>;
    return NormalElement<D>{random, static_cast<D>(mean), static_cast<D>(std), out};
  });
}

Tensor rand(Sizes shape, TensorOptions options, Generator& generator) {
  const RecordOp range("fill_uniform_");
  Tensor result = empty(std::move(shape), options);
  fill_uniform_(result, 0, 1, generator);
  return result;
}

Tensor randn(Sizes shape, TensorOptions options, Generator& generator) {
  const RecordOp range("fill_normal_");
  Tensor result = empty(std::move(shape), options);
  fill_normal_(result, 0, 1, generator);
  return result;
}

Tensor rand_like(const Tensor& like, Generator& generator) {
  check_floating("rand_like", like);
  Tensor result = empty_like(like);
  fill_uniform_(result, 0, 1, generator);
  return result;
}

Tensor randn_like(const Tensor& like, Generator& generator) {
  check_floating("randn_like", like);
  Tensor result = empty_like(like);
  fill_normal_(result, 0, 1, generator);
  return result;
}

Tensor randint(Integer low, Integer high, Sizes shape, Device device, Generator& generator) {
  const RecordOp op("randint");
  check<ValueError>(low < high, "randint: needs low < high, got {} and {}", low, high);
  Tensor result = empty(std::move(shape), {.dtype = int64, .device = device});
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  for_each_index("randint", device, result.numel(),
                 IntegerElement{next_draw("randint", generator, device), low, range, result.data<int64_t>()},
                 grain);
  return result;
}

Tensor randint(Integer low, Integer high, Sizes shape, Generator& generator) {
  return randint(low, high, std::move(shape), default_device(), generator);
}

Tensor randperm(Integer n, Device device, Generator& generator) {
  const RecordOp range("randperm");
  check<ValueError>(n >= 0, "randperm: n must not be negative, got {}", n);
  const Tensor result = empty({n}, {.dtype = int64, .device = Device()});
  int64_t* const order = result.data<int64_t>();
  std::iota(order, order + n, int64_t{0});
  const RandomDraw random = next_draw("randperm", generator, Device());
  // Fisher-Yates. Some places ahead of their use, so that they are drawn in vectors and fetched in time.
  constexpr int64_t ahead = 256;
  int64_t places[ahead];
  for (int64_t last = n - 1; last > 0; last -= ahead) {
    const int64_t count = std::min(ahead, last);
    const auto draw = [&](const auto& scale) {
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t k = 0; k < count; ++k)
        places[k] = static_cast<int64_t>(scale(random.word64(last - k), static_cast<uint64_t>(last - k + 1)));
    };
    if ((last + 1) >> 32 == 0)
      draw([](uint64_t word, uint64_t bound) { return scale_word_little(word, bound); });
    else
      draw([](uint64_t word, uint64_t bound) { return scale_word(word, bound); });
    for (int64_t k = 0; k < count; ++k) __builtin_prefetch(order + places[k], 1);
    for (int64_t k = 0; k < count; ++k) std::swap(order[last - k], order[places[k]]);
  }
  return ops::to_device(result, device);
}

Tensor randperm(Integer n, Generator& generator) { return randperm(n, default_device(), generator); }

BernoulliBlock next_mask(const char* op, double p, const Tensor& mask, Generator& generator) {
  const auto limit = static_cast<uint64_t>(std::ceil(p * 0x1p32));
  return {next_draw(op, generator, mask.device()), limit, mask.numel(), mask.data<bool>()};
}

Tensor bernoulli(Real p, Sizes shape, Device device, Generator& generator) {
  const RecordOp range("bernoulli");
  check<ValueError>(p >= 0 && p <= 1, "bernoulli: the probability must be in [0, 1], got {}", p);
  Tensor result = empty(std::move(shape), {.dtype = boolean, .device = device});
  for_each_index("bernoulli", device, ceil_div(result.numel(), 4),
                 next_mask("bernoulli", p, result, generator), grain);
  return result;
}

}  // namespace pleat
