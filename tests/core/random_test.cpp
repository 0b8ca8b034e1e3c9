#include "pleat/core/random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pleat/core/copy.h"
#include "pleat/core/error.h"
#include "pleat/core/parallel.h"
#include "pleat/core/philox.h"
#include "pleat/tests/catch.h"

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

TEST_CASE("bad random requests are refused", "[core]") {
  CHECK_THROWS_AS(rand({2}, {.dtype = int64}), DTypeError);
  CHECK_THROWS_AS(randint(3, 3, {2}), ValueError);
  CHECK_THROWS_AS(bernoulli(1.5, {2}), ValueError);
  CHECK_THROWS_AS(randperm(-1), ValueError);
  CHECK_THROWS_AS(fill_uniform_(zeros({2}), 2, 1), ValueError);
  CHECK_THROWS_AS(fill_normal_(zeros({2}), 0, -1), ValueError);
}
