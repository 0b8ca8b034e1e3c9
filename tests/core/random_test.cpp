#include "pleat/core/random/random.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <thread>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/box_muller.h"
#include "pleat/core/random/philox.h"
#include "pleat/core/random/random_functors.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

TEST_CASE("Philox gives the numbers of its authors' test vectors", "[core]") {
  // kat_vectors of Random123, philox4x32 with 10 rounds.
  CHECK(philox(0, 0, 0) == std::array<uint32_t, 4>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}) ==
        std::array<uint32_t, 4>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(philox(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu) ==
        std::array<uint32_t, 4>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("random tensors do not depend on threads or layout", "[core]") {
  const int before = num_threads();
  const auto draw = [](MemoryFormat format) {
    Generator generator(42);
    return randn({8, 5, 30, 31}, {.format = format}, generator).to_vector();
  };
  set_num_threads(1);
  const auto expected = draw(MemoryFormat::contiguous);
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    CHECK(draw(MemoryFormat::contiguous) == expected);
    CHECK(draw(MemoryFormat::channels_last) == expected);
  }
  set_num_threads(before);
}

TEST_CASE("an element of a draw is a function of its number alone", "[core]") {
  constexpr int64_t n = 1003;
  const auto words = [](uint64_t draw, int64_t i) { return philox(5, static_cast<uint64_t>(i), draw); };
  Generator generator(5);
  const auto uniform = rand({n}, {}, generator).to_vector();
  const auto dice = randint(-3, 7, {n}, generator).to_vector<int64_t>();
  const auto far = randint(-(int64_t{1} << 40), int64_t{1} << 40, {n}, generator).to_vector<int64_t>();
  const auto order = randperm(n, generator).to_vector<int64_t>();
  const auto word = [&](uint64_t draw, int64_t i) {
    const auto four = words(draw, i);
    return (uint64_t{four[0]} << 32) | four[1];
  };
  __extension__ typedef unsigned __int128 uint128;
  const auto scaled = [](uint64_t bits, uint64_t range) {
    return static_cast<int64_t>(static_cast<uint64_t>((uint128{bits} * range) >> 64));
  };
  std::vector<int64_t> shuffled(n);
  std::iota(shuffled.begin(), shuffled.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(shuffled[static_cast<std::size_t>(i)],
              shuffled[static_cast<std::size_t>(scaled(word(3, i), static_cast<uint64_t>(i) + 1))]);
  CHECK(order == shuffled);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    REQUIRE(uniform[at] == unit_float(words(0, i)[0]));
    REQUIRE(dice[at] == -3 + scaled(word(1, i), 10));
    REQUIRE(far[at] == -(int64_t{1} << 40) + scaled(word(2, i), uint64_t{1} << 41));
  }
}

TEST_CASE("the same seed gives the same stream, draws differ", "[core]") {
  Generator a(1);
  Generator b(1);
  const auto first = rand({100}, {}, a).to_vector();
  CHECK(rand({100}, {}, b).to_vector() == first);
  CHECK(rand({100}, {}, a).to_vector() != first);
  Generator c(2);
  CHECK(rand({100}, {}, c).to_vector() != first);
  a.set_draws(0);
  CHECK(rand({100}, {}, a).to_vector() == first);
}

TEST_CASE("random numbers on a GPU are those of the CPU, to the bit", "[core][device]") {
  if (pleat_test::lacks_gpus()) return;
  const auto draw = [] {
    Generator generator(11);
    std::vector<std::vector<double>> all;
    for (const DType dtype : {float64, float32, float16, bfloat16}) {
      const Tensor x = empty({7, 5, 3, 11}, {.dtype = dtype, .format = MemoryFormat::channels_last});
      fill_uniform_(x, -0.3, 1.7, generator);
      all.push_back(x.to_vector<double>());
      fill_normal_(x, 0.3, 1.7, generator);
      all.push_back(x.to_vector<double>());
    }
    all.push_back(randint(-5, 1000, {999}, generator).to_vector<double>());
    all.push_back(bernoulli(0.3, {999}, default_device(), generator).to_vector<double>());
    all.push_back(randperm(99, generator).to_vector<double>());
    return all;
  };
  CHECK(pleat_test::on_device("cuda", draw) == pleat_test::on_device("cpu", draw));
}

TEST_CASE("Box and Muller's formula, by arithmetic that is the same everywhere", "[core]") {
  const auto exact = [](double u, double v) {
    return std::sqrt(-2 * std::log(static_cast<long double>(u))) *
           std::cos(2 * std::numbers::pi_v<long double> * v);
  };
  double single = 0;
  double precise = 0;
  for (int64_t i = 0; i < 20000; ++i) {
    const auto words = philox(5, static_cast<uint64_t>(i), 0);
    // Every tenth u is near one end: tails and small radii.
    const uint32_t shift = i % 10 == 0 ? words[1] % 24 : 0;
    const float u = 1 - unit_float(i % 20 == 0 ? words[0] >> shift : ~(words[0] >> shift));
    const float v = unit_float(words[2]);
    if (u == 1) continue;
    // Near a zero of the cosine a relative error means nothing: errors are relative to the radius.
    const auto radius = std::sqrt(-2 * std::log(static_cast<long double>(u)));
    single = std::max(single, static_cast<double>(std::abs(box_muller::normal(u, v) - exact(u, v)) / radius));
    precise = std::max(
        precise, static_cast<double>(std::abs(box_muller::normal<double>(u, v) - exact(u, v)) / radius));
  }
  CHECK(single < 3e-7);
  CHECK(precise < 6e-16);
  CHECK(box_muller::normal(1.0F, 0.25F) == 0);
  CHECK(box_muller::cos_turns(0.0) == 1);
  CHECK(box_muller::cos_turns(0.5) == -1);
  CHECK(box_muller::cos_turns(0.25) == 0);
  CHECK(box_muller::cos_turns(0.75) == 0);
}

TEST_CASE("distributions have their moments and ranges", "[core]") {
  Generator generator(3);
  for (const DType dtype : {float32, float64}) {
    const auto uniform = rand({100000}, {.dtype = dtype}, generator).to_vector<double>();
    CHECK(*std::min_element(uniform.begin(), uniform.end()) >= 0);
    CHECK(*std::max_element(uniform.begin(), uniform.end()) < 1);
    CHECK(std::accumulate(uniform.begin(), uniform.end(), 0.0) / 1e5 == Approx(0.5).margin(0.005));
    const auto normal = randn({100000}, {.dtype = dtype}, generator).to_vector<double>();
    double mean = 0;
    double square = 0;
    double fourth = 0;
    for (const double v : normal) {
      mean += v / 1e5;
      square += v * v / 1e5;
      fourth += v * v * v * v / 1e5;
    }
    CHECK(mean == Approx(0).margin(0.015));
    CHECK(square == Approx(1).margin(0.02));
    CHECK(fourth == Approx(3).margin(0.15));
  }
  const auto integers = randint(-2, 3, {10000}, generator).to_vector<int64_t>();
  for (int64_t v = -2; v < 3; ++v)
    CHECK(std::abs(std::count(integers.begin(), integers.end(), v) - 2000) < 200);
  CHECK(*std::min_element(integers.begin(), integers.end()) == -2);
  CHECK(*std::max_element(integers.begin(), integers.end()) == 2);
  auto order = randperm(1000, generator).to_vector<int64_t>();
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  const auto coins = bernoulli(0.3, {10000}, {}, generator).to_vector<double>();
  CHECK(std::accumulate(coins.begin(), coins.end(), 0.0) == Approx(3000).margin(200));
}

namespace {

/// The functor for elements of type T; whether what it gives for a number on [0, 1) is one of T in [low,
/// high).
template <class T>
auto uniform(double low, double high) {
  return uniform_element<T>({1, 0}, low, high, nullptr);
}
template <class T, class Functor, class U>
bool is_inside(const Functor& functor, U on_unit, double low, double high) {
  const auto x = functor.number(on_unit);
  return x >= low && x < high && convert<double>(convert<T>(x)) == x;
}

constexpr double intervals[][2] = {{1, 2},      {-1, 1},       {-0.3, 1.7},   {0.1, 0.7},
                                   {-3, -1},    {1e-7, 3e-7},  {-5e-6, 1e-6}, {65000.5, 65504},
                                   {0.1, 1000}, {-0.7, -1e-30}};

}  // namespace

TEMPLATE_TEST_CASE("uniform numbers are below the upper end for all random bits", "[core]", float, Half,
                   BFloat16) {
  constexpr uint32_t words = 1u << 24;
  const auto on_unit = uniform<TestType>(0, 1);
  int64_t outside = 0;
  for (uint32_t word = 0; word < words; ++word)
    if (!is_inside<TestType>(on_unit, unit_float(word << 8), 0, 1)) ++outside;
  CHECK(outside == 0);
  for (const auto& [low, high] : intervals) {
    CAPTURE(low, high);
    const auto functor = uniform<TestType>(low, high);
    outside = 0;
    for (uint32_t word = 0; word < words; word += word < 5000 || word >= words - 5000 ? 1 : 97)
      if (!is_inside<TestType>(functor, unit_float(word << 8), low, high)) ++outside;
    CHECK(outside == 0);
  }
}

TEST_CASE("uniform numbers of float64 are below the upper end for the extreme random bits", "[core]") {
  for (const auto& [low, high] : intervals) {
    const auto functor = uniform<double>(low, high);
    for (const uint64_t end : {uint64_t{0}, (uint64_t{1} << 53) - 1000})
      for (uint64_t word = end; word < end + 1000; ++word)
        CHECK(is_inside<double>(functor, static_cast<double>(word) * 0x1p-53, low, high));
  }
}

TEST_CASE("of a half type, P(x < p) is p for each p that it has", "[core]") {
  // Of all words, as many as the number says.
  const auto below = [](const auto& functor, float p) {
    int64_t count = 0;
    for (uint32_t word = 0; word < 1u << 24; ++word)
      count += functor.number(unit_float(word << 8)) < p ? 1 : 0;
    return static_cast<double>(count) * 0x1p-24;
  };
  for (const float p : {0.5F, 1.0F / 64, 1 - 1.0F / 256}) {
    CHECK(below(uniform<Half>(0, 1), p) == p);
    CHECK(below(uniform<BFloat16>(0, 1), p) == p);
  }
}

TEST_CASE("an interval without a number of the type gives the nearest, one that is empty its end", "[core]") {
  const Tensor x = empty({100}, float16);
  fill_uniform_(x, 1.00001, 1.00002);
  CHECK(array_equal(x, ones_like(x)));
  fill_uniform_(x, 3, 3);
  CHECK(array_equal(x, full_like(x, 3)));
}

TEST_CASE("drawn numbers are inside in every type and format", "[core]") {
  Generator generator(9);
  for (const DType dtype : {bfloat16, float16, float32, float64}) {
    const Tensor x = empty({2, 64, 32, 32}, {.dtype = dtype, .format = MemoryFormat::channels_last});
    for (const auto& [low, high] : intervals) {
      fill_uniform_(x, low, high, generator);
      const auto values = x.to_vector<double>();
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      CHECK(*least >= low);
      CHECK(*most < high);
    }
    fill_uniform_(x, 0, 1, generator);
    CHECK(mean(x.to(float64)).item() == Approx(0.5).margin(dtype == bfloat16 ? 4e-3 : 3e-3));
  }
}

TEST_CASE("normal numbers are finite for all random bits", "[core]") {
  double largest = 0;
  for (uint32_t word = 0; word < 1u << 24; ++word)
    for (const float v : {0.0F, 0x1.fffffep-1F}) {
      const double x = std::abs(box_muller::normal(1 - unit_float(word << 8), v));
      if (!(x <= largest)) largest = x;  // a NaN, too
    }
  CHECK(largest == Approx(std::sqrt(48 * std::numbers::ln2)));
  CHECK(box_muller::normal(1 - unit_double(~0u, ~0u), 0.0) == Approx(std::sqrt(106 * std::numbers::ln2)));
}

TEST_CASE("a probability of 0 or 1, and near, is what it says", "[core]") {
  CHECK_FALSE(any(bernoulli(0, {100000})).item<bool>());
  CHECK(all(bernoulli(1, {100000})).item<bool>());
  const auto is_true = [](uint64_t limit, uint32_t word) {
    return BernoulliBlock{{1, 0}, limit, 1, nullptr}.is_true(word);
  };
  CHECK(is_true(uint64_t{1} << 32, ~0u));
  CHECK_FALSE(is_true((uint64_t{1} << 32) - 1, ~0u));
  CHECK_FALSE(is_true(0, 0));
  CHECK(is_true(1, 0));
}

TEST_CASE("rand_like and randn_like follow shape, type and layout", "[core]") {
  const Tensor like = empty({2, 3, 4, 5}, {.dtype = float16, .format = MemoryFormat::channels_last});
  for (const auto& draw : {rand_like, randn_like}) {
    Generator one(4), other(4);
    const Tensor x = draw(like, one);
    CHECK(x.describe() == like.describe());
    const TensorOptions as_like{.dtype = float16};
    CHECK(array_equal(
        x, draw == rand_like ? rand({2, 3, 4, 5}, as_like, other) : randn({2, 3, 4, 5}, as_like, other)));
  }
  const Tensor transposed = transpose(zeros({3, 4}), 0, 1);
  CHECK(rand_like(transposed).strides() == transposed.strides());
  CHECK_THROWS_WITH(rand_like(arange(3)), "rand_like: needs a floating type, got " + arange(3).describe());
  CHECK_THROWS_AS(randn_like(tensor({true})), DTypeError);
}

TEST_CASE("bad random requests are refused", "[core]") {
  CHECK_THROWS_AS(rand({2}, {.dtype = int64}), DTypeError);
  CHECK_THROWS_AS(randint(3, 3, {2}), ValueError);
  CHECK_THROWS_AS(bernoulli(1.5, {2}), ValueError);
  CHECK_THROWS_AS(randperm(-1), ValueError);
  CHECK_THROWS_AS(fill_uniform_(zeros({2}), 2, 1), ValueError);
  CHECK_THROWS_AS(fill_normal_(zeros({2}), 0, -1), ValueError);
  CHECK_THROWS_AS(fill_uniform_(zeros({2}), -3e38, 3e38), ValueError);  // apart by more than float32 has
}

namespace {

std::vector<float> drawn_in_a_thread(const std::function<void()>& first = {}) {
  std::vector<float> values;
  std::thread([&] {
    if (first) first();
    values = rand({4}).to_vector();
  }).join();
  return values;
}

}  // namespace

TEST_CASE("threads that nobody seeded differ, and repeat after manual_seed", "[core]") {
  const auto run = [] {
    manual_seed(7);
    std::vector<std::vector<float>> all{rand({4}).to_vector()};
    for (int i = 0; i < 3; ++i) all.push_back(drawn_in_a_thread());
    return all;
  };
  const auto all = run();
  CHECK(all == run());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i] != all[j]);
  Generator seven(7);
  CHECK(all[0] == rand({4}, {}, seven).to_vector());  // who seeds draws by the seed itself
  manual_seed(8);
  CHECK(drawn_in_a_thread() != all[1]);
}

TEST_CASE("a thread that seeds itself draws by its own seed, and one with a scope takes no number",
          "[core]") {
  manual_seed(7);
  const auto first = drawn_in_a_thread();
  CHECK(drawn_in_a_thread([] { manual_seed(12); }) == [] {
    Generator twelve(12);
    return rand({4}, {}, twelve).to_vector();
  }());
  manual_seed(7);
  const auto scoped = drawn_in_a_thread([] { const UseGenerator random(Generator(1)); });
  CHECK(scoped == first);
  manual_seed(7);
  std::thread([] {
    const UseGenerator random(Generator(1));
    rand({4});
  }).join();
  CHECK(drawn_in_a_thread() == first);
  CHECK(default_generator().draws() == 0);
}

TEST_CASE("streams of processes differ, but for generators of one's own", "[core]") {
  const auto draw = [] {
    manual_seed(3);
    return rand({8}).to_vector<float>();
  };
  const auto own = [] {
    Generator generator(3);
    return rand({8}, {}, generator).to_vector<float>();
  };
  const std::vector<float> first = draw();
  CHECK(own() == first);
  set_random_stream(1);
  const std::vector<float> second = draw();
  CHECK(own() == first);
  CHECK(default_generator().seed() == 3);  // what a checkpoint has is the same in all processes
  CHECK(default_generator().draws() == 1);
  set_random_stream(2);
  const std::vector<float> third = draw();
  set_random_stream(0);
  CHECK(draw() == first);
  CHECK(first != second);
  CHECK(first != third);
  CHECK(second != third);
}
