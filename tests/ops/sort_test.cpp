#include "pleat/ops/index/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/parallel/threads_scope.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {
using Numbers = std::vector<int>;
Numbers numbers(const Tensor& x) { return x.to_vector<int>(); }
}  // namespace

TEST_CASE("sort orders lines and keeps equal elements in order", "[sort]") {
  const Tensor x = tensor({{3, 1, 3, 2}, {0, 0, -1, 5}});
  const auto up = sort(x);
  CHECK(numbers(up.values) == Numbers{1, 2, 3, 3, -1, 0, 0, 5});
  CHECK(numbers(up.indices) == Numbers{1, 3, 0, 2, 2, 0, 1, 3});
  const auto down = sort(x, {.descending = true});
  CHECK(numbers(down.values) == Numbers{3, 3, 2, 1, 5, 0, 0, -1});
  CHECK(numbers(down.indices) == Numbers{0, 2, 3, 1, 3, 0, 1, 2});
  CHECK(numbers(sort(x, {.dim = 0}).values) == Numbers{0, 0, -1, 2, 3, 1, 3, 5});
  CHECK(numbers(argsort(transpose(x, 0, 1), {.dim = 0})) == Numbers{1, 2, 3, 0, 0, 1, 2, 3});
  CHECK(sort(scalar(4)).values.item<int>() == 4);
  CHECK(sort(scalar(4)).indices.item<int>() == 0);
  CHECK(sort(zeros({2, 0})).indices.shape() == Shape{2, 0});
  CHECK(sort(zeros({0, 2})).values.shape() == Shape{0, 2});
  CHECK_THROWS_AS(sort(x, {.dim = 2}), IndexError);
}

TEST_CASE("sort and topk are right for lines of every short length", "[sort]") {
  Generator generator(3);
  for (const DType dtype : {uint8, int32, float16, float32, float64})
    for (int64_t n = 1; n <= 40; ++n) {
      const Tensor x = empty({7, n}, {.dtype = float64});
      fill_uniform_(x, 0, 9, generator);
      const Tensor lines = ops::cast(ops::cast(x, int32), dtype);  // few values: many are equal
      const std::vector<int> from = numbers(lines);
      for (const bool descending : {false, true})
        for (const int64_t k : {n, (n + 2) / 3}) {
          const auto [values, indices] =
              k == n ? sort(lines, {.descending = descending}) : topk(lines, k, {.largest = descending});
          Numbers right_values, right_indices;
          for (int64_t line = 0; line < 7; ++line) {
            const int* const own = from.data() + line * n;
            Numbers order(static_cast<std::size_t>(n));
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return descending ? own[a] > own[b] : own[a] < own[b]; });
            for (int64_t i = 0; i < k; ++i) {
              right_indices.push_back(order[static_cast<std::size_t>(i)]);
              right_values.push_back(own[right_indices.back()]);
            }
          }
          INFO(size_of(dtype) << " bytes, " << k << " of " << n << (descending ? " descending" : ""));
          REQUIRE(numbers(values) == right_values);
          REQUIRE(numbers(indices) == right_indices);
        }
    }
}

TEST_CASE("sort works for every type", "[sort]") {
  for (const DType dtype : {uint8, int32, int64, bfloat16, float16, float32, float64}) {
    const auto [values, indices] = sort(ops::cast(tensor({3, 1, 2, 1}), dtype));
    CHECK(values.dtype() == dtype);
    CHECK(indices.dtype() == int64);
    CHECK(numbers(values) == Numbers{1, 1, 2, 3});
    CHECK(numbers(indices) == Numbers{1, 3, 2, 0});
  }
  CHECK(numbers(argsort(tensor({true, false, true}))) == Numbers{1, 0, 2});
}

TEST_CASE("a NaN is the largest", "[sort]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = tensor({nan, 1.0F, -infinity, nan, infinity});
  CHECK(numbers(argsort(x)) == Numbers{2, 1, 4, 0, 3});
  CHECK(numbers(argsort(x, {.descending = true})) == Numbers{0, 3, 4, 1, 2});
  CHECK(numbers(topk(x, 3).indices) == Numbers{0, 3, 4});
}

TEST_CASE("sort agrees with a stable sort by comparing, for short and long lines of any values",
          "[sort][cpu]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor special =
      tensor({0.0, -0.0, nan, 1.0, -infinity, -nan, infinity, 1e-40, -1e-40, 5e-324, -1.0, 3e-308, -3e-308},
             float64);
  const Tensor wide = tensor(
      {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{0}, int64_t{-1}});
  for (const DType dtype : {boolean, uint8, int32, int64, bfloat16, float16, float32, float64})
    for (const int64_t n : {1, 5, 64, 300, 3000}) {
      const int64_t low = dtype == uint8 || dtype == boolean ? 0 : -1000;
      const Tensor plain = ops::cast(randint(low, dtype == uint8 ? 200 : 1000, {n}), dtype);
      const Tensor x = cat({plain, ops::cast(is_floating(dtype) ? special : wide, dtype), plain}, 0);
      const std::vector<double> values = x.to_vector<double>();
      const std::vector<int64_t> whole = dtype == int64 ? x.to_vector<int64_t>() : std::vector<int64_t>();
      for (const bool descending : {false, true}) {
        CAPTURE(dtype, n, descending);
        std::vector<int64_t> expected(values.size());
        std::iota(expected.begin(), expected.end(), int64_t{0});
        const auto less = [&](std::size_t a, std::size_t b) {
          if (dtype == int64) return whole[a] < whole[b];
          return std::isnan(values[b]) ? !std::isnan(values[a]) : values[a] < values[b];
        };
        std::stable_sort(expected.begin(), expected.end(), [&](int64_t i, int64_t j) {
          const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
          return descending ? less(b, a) : less(a, b);
        });
        const auto sorted = sort(x, {.descending = descending});
        CHECK(sorted.indices.to_vector<int64_t>() == expected);
        for (const int64_t k : {int64_t{1}, x.numel() / 40, x.numel() / 2}) {
          const std::vector<int64_t> first(expected.begin(), expected.begin() + k);
          CHECK(topk(x, k, {.largest = descending}).indices.to_vector<int64_t>() == first);
        }
      }
    }
}

TEST_CASE("a line of many elements is sorted by several threads", "[sort]") {
  const Tensor x = randn({200'003});
  const Tensor small = randint(-5, 5, {200'003});
  for (const int threads : {1, 3}) {
    const ThreadsScope scope(threads);
    for (const Tensor& line : {x, small}) {
      const std::vector<double> values = line.to_vector<double>();
      std::vector<int64_t> expected(values.size());
      std::iota(expected.begin(), expected.end(), int64_t{0});
      std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
        return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
      });
      const bool same = argsort(line).to_vector<int64_t>() == expected;
      CHECK(same);
    }
  }
}

TEST_CASE("sort on a GPU gives the CPU's order, for every type and what is special in it", "[sort][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor special =
      tensor({0.0, -0.0, nan, 1.0, -infinity, -nan, infinity, -0.0, 0.0, -1.0, 3e-310, -3e-310}, float64);
  for (const DType dtype : {boolean, uint8, int32, int64, bfloat16, float16, float32, float64}) {
    const Tensor x = ops::cast(randint(dtype == uint8 ? 0 : -9, 10, {4, 5, 6}), dtype);
    const Tensor extremes =
        dtype == int32 ? tensor({std::numeric_limits<int32_t>::min(), 0, -1, 7}, int32)
        : dtype == int64
            ? tensor({std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{-1}})
            : ops::cast(tensor({3, 0, 2}), dtype);
    const auto all = [&](Device device) {
      const Tensor numbers = ops::to_device(x, device);
      const Tensor ends = ops::to_device(extremes, device);
      const Tensor specials = ops::to_device(special, device);
      std::vector<std::vector<int64_t>> results;
      const auto keep = [&](const ValuesIndices& got, const Tensor& from) {
        results.push_back(got.indices.to_vector<int64_t>());
        CHECK(gather(from, -1, got.indices).to_vector<double>() == got.values.to_vector<double>());
        results.push_back(ops::cast(got.values, int64).to_vector<int64_t>());
      };
      for (const bool descending : {false, true}) {
        keep(sort(numbers, {.descending = descending}), numbers);
        for (const int64_t dim : {0, 1, 2})
          results.push_back(
              argsort(transpose(numbers, 0, 1), {.dim = dim, .descending = descending}).to_vector<int64_t>());
        keep(topk(numbers, 3, {.largest = descending}), numbers);
        keep(sort(ends, {.descending = descending}), ends);
        if (is_floating(dtype))
          results.push_back(
              argsort(ops::cast(specials, dtype), {.descending = descending}).to_vector<int64_t>());
      }
      return results;
    };
    CAPTURE(name(dtype));
    CHECK(all("cuda") == all("cpu"));
  }
}

TEST_CASE("sort agrees with std::stable_sort on random lines", "[sort]") {
  const Tensor x = ops::cast(randint(0, 20, {7, 3, 40}), float32);
  const Tensor turned = transpose(x, 0, 2);
  const auto [values, indices] = sort(turned, {.dim = 0});
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      auto line = select(select(x, 0, i), 0, j).to_vector();
      std::stable_sort(line.begin(), line.end());
      CHECK(select(select(values, 2, i), 1, j).to_vector() == line);
    }
  CHECK(gather(turned, 0, indices).to_vector() == values.to_vector());
}

TEST_CASE("topk finds the extremes in order", "[sort]") {
  const Tensor x = tensor({{3, 1, 3, 2}, {0, 0, -1, 5}});
  const auto largest = topk(x, 2);
  CHECK(numbers(largest.values) == Numbers{3, 3, 5, 0});
  CHECK(numbers(largest.indices) == Numbers{0, 2, 3, 0});
  const auto smallest = topk(x, 3, {.largest = false});
  CHECK(numbers(smallest.values) == Numbers{1, 2, 3, -1, 0, 0});
  CHECK(numbers(smallest.indices) == Numbers{1, 3, 0, 2, 0, 1});
  CHECK(numbers(topk(x, 1, {.dim = 0}).values) == Numbers{3, 1, 3, 5});
  CHECK(topk(x, 0).values.shape() == Shape{2, 0});
  CHECK(numbers(topk(x, 4).values) == numbers(sort(x, {.descending = true}).values));
  CHECK_THROWS_WITH(topk(x, 5), "topk: k = 5 is outside [0, 4], dimension 1 of [2, 4]");
  CHECK_THROWS_AS(topk(x, -1), IndexError);
}
