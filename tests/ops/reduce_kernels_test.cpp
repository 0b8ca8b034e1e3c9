#include "pleat/ops/reduce/reduce_kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/view.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A reduction as plain loops: the elements that make each result, in row-major order of both.
std::vector<std::vector<double>> groups(const Tensor& x, const Dims& dims) {
  std::vector<bool> reduced(x.shape().size(), dims.empty());
  for (const int64_t dim : dims)
    if (x.rank() > 0) reduced[static_cast<std::size_t>(normalize_dim(dim, x.rank(), "test"))] = true;
  int64_t outputs = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (!reduced[d]) outputs *= x.shape()[d];
  std::vector<std::vector<double>> result(static_cast<std::size_t>(outputs));
  const std::vector<double> values = x.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t output = 0;
    int64_t step = 1;
    for (std::size_t d = reduced.size(); d-- > 0;) {
      if (!reduced[d]) {
        output += rest % x.shape()[d] * step;
        step *= x.shape()[d];
      }
      rest /= x.shape()[d];
    }
    result[static_cast<std::size_t>(output)].push_back(values[i]);
  }
  return result;
}

using Reference = std::function<double(const std::vector<double>&)>;

double sum_of(const std::vector<double>& v) {
  long double total = 0;
  for (const double value : v) total += value;
  return static_cast<double>(total);
}
double var_of(const std::vector<double>& v, double correction) {
  const double mean = sum_of(v) / static_cast<double>(v.size());
  std::vector<double> squares;
  for (const double value : v) squares.push_back((value - mean) * (value - mean));
  return sum_of(squares) / (static_cast<double>(v.size()) - correction);
}
double norm_of(const std::vector<double>& v, double p) {
  std::vector<double> powers;
  for (const double value : v)
    powers.push_back(std::isinf(p) ? std::abs(value) : std::pow(std::abs(value), p));
  if (p == infinity) return *std::max_element(powers.begin(), powers.end());
  if (p == -infinity) return *std::min_element(powers.begin(), powers.end());
  if (p == 0) return static_cast<double>(std::count_if(v.begin(), v.end(), [](double a) { return a != 0; }));
  return std::pow(sum_of(powers), 1 / p);
}
double mean_of(const std::vector<double>& v) { return sum_of(v) / static_cast<double>(v.size()); }

/// One table of layouts serves every reduction: shapes above and below each block size, gaps, transpositions,
/// channels_last, expanded and single dimensions.
struct Layout {
  const char* name;
  Tensor x;
  std::vector<Dims> dims;
};

std::vector<Layout> layouts(DType dtype) {
  Generator generator(7);
  const auto random = [&](Shape shape) {
    const Tensor x = empty(std::move(shape), {.dtype = float64});
    fill_uniform_(x, dtype == uint8 || dtype == boolean ? 0 : -1.5, 3, generator);
    return ops::cast(x, dtype);
  };
  const Tensor cube = random({6, 5, 7});
  return {
      {"one number", random({}), {{}, {0}}},
      {"one row", random({70001}), {{}}},
      {"a matrix", random({130, 300}), {{}, {0}, {1}, {0, 1}}},
      {"a tall matrix", random({5000, 3}), {{0}, {1}, {}}},
      {"a tall matrix whose rows do not fit", random({3001, 20}), {{0}, {1}}},
      {"long columns", random({1500, 130}), {{0}}},
      {"transposed", ops::transpose(random({40, 90}), 0, 1), {{}, {0}, {1}}},
      {"every second column", ops::slice(random({40, 90}), 1, 1, 90, 2), {{}, {0}, {1}}},
      {"a cube", cube, {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}}},
      {"a cube turned", ops::permute(cube, {2, 0, 1}), {{}, {0}, {1}, {2}, {0, 2}, {-1, 0}}},
      {"expanded", ops::expand(random({3, 1, 4}), {3, 50, 4}), {{}, {0}, {1}, {2}, {1, 2}}},
      {"images", random({3, 4, 17, 16}), {{0, 2, 3}, {1}, {2, 3}, {0}, {1, 2, 3}}},
      {"channels_last images",
       ops::to_format(random({3, 4, 17, 16}), MemoryFormat::channels_last),
       {{0, 2, 3}, {1}, {2, 3}, {0}, {1, 2, 3}}},
      {"three long rows", random({3, 20011}), {{1}, {0}}},
      {"large images", random({9, 2, 40, 41}), {{0, 2, 3}, {1}, {2, 3}}},
      {"large channels_last images",
       ops::to_format(random({9, 2, 40, 41}), MemoryFormat::channels_last),
       {{0, 2, 3}, {0, 3}}},
      {"large images with gaps", ops::slice(random({9, 2, 40, 82}), 3, 1, 82, 2), {{0, 2, 3}, {}}},
      {"short rows", random({300, 49}), {{1}, {0}}},
      {"shorter rows", random({5, 140, 9}), {{2}, {0, 2}, {1, 2}}},
      {"small planes", random({6, 40, 5, 7}), {{2, 3}, {0, 2, 3}, {3}, {1, 3}}},
      {"sizes of one", random({1, 4, 1, 1, 5}), {{0}, {2, 3}, {1}, {0, 4}, {}}},
  };
}

using Reduction = std::function<Tensor(const Tensor&, const Dims&, bool)>;

/// Groups of a size outside [fewest, most] are left out.
void check_everywhere(const Reduction& reduction, const Reference& reference, DType dtype, double tolerance,
                      std::size_t most = 1 << 30, std::size_t fewest = 0) {
  for (const Layout& layout : layouts(dtype))
    for (const Dims& dims : layout.dims) {
      INFO(layout.name << " " << to_string(Shape(dims)) << " " << name(dtype));
      const Tensor y = reduction(layout.x, dims, false);
      const auto expected = groups(layout.x, dims);
      const std::vector<double> got = y.to_vector<double>();
      REQUIRE(got.size() == expected.size());
      if (expected[0].size() > most || expected[0].size() < fewest) continue;
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double right = reference(expected[i]);
        const double error = std::abs(got[i] - right) / std::max(1.0, std::abs(right));
        worst = error <= worst ? worst : error;  // keeps a NaN
      }
      CHECK(worst <= tolerance);
      const Tensor kept = reduction(layout.x, dims, true);
      CHECK(kept.rank() == layout.x.rank());
      CHECK(kept.to_vector<double>() == got);
    }
}

double tolerance_of(DType dtype) { return dtype == float64 ? 1e-14 : dtype == float32 ? 1e-7 : 4e-3; }

}  // namespace

TEST_CASE("sum and mean are right in every layout and type") {
  for (const DType dtype : {float64, float32, float16, bfloat16}) {
    // Of float32 the rounding of fours, each of which is below 12.
    const double tolerance = dtype == float32 ? 2e-6 : tolerance_of(dtype);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::sum(x, dims, keep); }, sum_of, dtype,
                     tolerance);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::mean(x, dims, keep); }, mean_of, dtype,
                     tolerance);
  }
  for (const DType dtype : {boolean, uint8, int32, int64})
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::sum(x, dims, keep); }, sum_of, dtype,
                     0);
  CHECK(ops::sum(tensor({true, true, false})).dtype() == int64);
  CHECK(ops::mean(tensor({1, 2})).dtype() == float32);
  CHECK(ops::mean(tensor({true, true, false, false})).item() == 0.5);
  CHECK(ops::sum(full({3}, 2000000000, {.dtype = int32})).item<int64_t>() == 6000000000);
}

TEST_CASE("max and min are right in every layout and type") {
  const auto largest = [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); };
  const auto smallest = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); };
  for (const DType dtype : {float64, float32, float16, bfloat16, int64, int32, uint8, boolean}) {
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::max(x, dims, keep); }, largest, dtype,
                     0);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::min(x, dims, keep); }, smallest, dtype,
                     0);
    CHECK(ops::max(zeros({2}, {.dtype = dtype})).dtype() == dtype);
  }
}

TEST_CASE("argmax and argmin give the first of equal elements") {
  const auto first_largest = [](const std::vector<double>& v) {
    return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
  };
  const auto first_smallest = [](const std::vector<double>& v) {
    return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
  };
  // int32 values are few, so that almost every group has ties.
  for (const DType dtype : {float64, float32, bfloat16, int32})
    for (const Layout& layout : layouts(dtype))
      for (const Dims& dims : layout.dims) {
        if (dims.size() > 1) continue;
        const auto dim = dims.empty() ? std::optional<int64_t>() : dims[0];
        INFO(layout.name << " " << to_string(Shape(dims)) << " " << name(dtype));
        std::vector<double> largest;
        std::vector<double> smallest;
        for (const auto& group : groups(layout.x, dims)) {
          largest.push_back(first_largest(group));
          smallest.push_back(first_smallest(group));
        }
        CHECK(ops::argmax(layout.x, dim).to_vector<double>() == largest);
        CHECK(ops::argmin(layout.x, dim, true).to_vector<double>() == smallest);
        if (!dim) continue;
        CHECK(ops::max_with_indices(layout.x, *dim).values.to_vector<double>() ==
              ops::max(layout.x, *dim).to_vector<double>());
        CHECK(ops::min_with_indices(layout.x, *dim, true).values.shape() ==
              ops::min(layout.x, *dim, true).shape());
      }
}

TEST_CASE("prod, norm, logsumexp, any and all are right in every layout") {
  for (const DType dtype : {float64, float32}) {
    // Of 70,000 numbers around 1 the product leaves the range: there the reference does, too, or is 0.
    const double tolerance = 100 * tolerance_of(dtype);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::prod(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
                     },
                     dtype, tolerance, 40);
    for (const double p : {2.0, 1.0, 0.0, 3.5, -1.0, infinity, -infinity})
      check_everywhere(
          [&](auto& x, auto& dims, bool keep) { return ops::norm(x, dims, {.p = p, .keepdim = keep}); },
          [&](const std::vector<double>& v) { return norm_of(v, p); }, dtype, tolerance);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::logsumexp(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       double total = 0;
                       for (const double value : v) total += std::exp(value);
                       return std::log(total);
                     },
                     dtype, tolerance);
  }
  for (const DType dtype : {float32, float16, int32, uint8, boolean}) {
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::any(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::any_of(v.begin(), v.end(), [](double a) { return a != 0; });
                     },
                     dtype, 0);
    check_everywhere([](auto& x, auto& dims, bool keep) { return ops::all(x, dims, keep); },
                     [](const std::vector<double>& v) {
                       return std::all_of(v.begin(), v.end(), [](double a) { return a != 0; });
                     },
                     dtype, 0);
  }
  CHECK(ops::all(ones({70000})).item<bool>());
  CHECK_FALSE(ops::any(zeros({300, 200})).item<bool>());
  CHECK(ops::any(tensor({nan_value})).dtype() == boolean);
  CHECK(ops::prod(tensor({2, 3, 4})).dtype() == int64);
  CHECK(ops::norm(tensor({3, 4})).dtype() == float32);
  CHECK_THROWS_WITH(ops::norm(ones({2}), {}, {.p = nan_value}), Contains("p must be a number"));
}

TEST_CASE("var, stddev and var_mean are right in every layout and type") {
  for (const double correction : {1.0, 0.0})
    for (const DType dtype : {float64, float32, float16}) {
      const auto reference = [&](const std::vector<double>& v) { return var_of(v, correction); };
      const auto root = [&](const std::vector<double>& v) { return std::sqrt(var_of(v, correction)); };
      const auto options = [&](bool keep) { return VarOptions{.correction = correction, .keepdim = keep}; };
      const double tolerance = 10 * tolerance_of(dtype);
      check_everywhere([&](auto& x, auto& dims, bool keep) { return ops::var(x, dims, options(keep)); },
                       reference, dtype, tolerance, 1 << 30, 2);
      check_everywhere([&](auto& x, auto& dims, bool keep) { return ops::stddev(x, dims, options(keep)); },
                       root, dtype, tolerance, 1 << 30, 2);
      check_everywhere(
          [&](auto& x, auto& dims, bool keep) { return ops::var_mean(x, dims, options(keep)).mean; }, mean_of,
          dtype, tolerance);
    }
  CHECK(std::isnan(ops::var(scalar(1.0)).item()));
  CHECK(ops::var(scalar(1.0), {}, {.correction = 0}).item() == 0);
  CHECK_THROWS_WITH(ops::var(ones({2}), {}, {.correction = nan_value}),
                    Contains("correction must be a finite number"));
}

TEST_CASE("a large mean costs the variance no digits") {
  Generator generator(3);
  const Tensor noise = empty({400000}, {.dtype = float64});
  fill_normal_(noise, 0, 1, generator);
  for (const double mean : {0.0, 1e4, -1e6}) {
    const Tensor x = ops::cast(add(noise, scalar(mean, float64)), float32);
    const double right = var_of(x.to_vector<double>(), 1);
    CHECK(std::abs(ops::var(x).item<double>() / right - 1) < 1e-6);
    const Tensor matrix = ops::reshape(x, {100000, 4});
    const std::vector<double> columns = ops::var(matrix, 0).to_vector<double>();
    const auto expected = groups(matrix, 0);
    for (std::size_t c = 0; c < 4; ++c) CHECK(std::abs(columns[c] / var_of(expected[c], 1) - 1) < 1e-6);
  }
}

TEST_CASE("logsumexp stands large and infinite numbers") {
  CHECK(ops::logsumexp(tensor({1000.0, 1000.0})).item() == Approx(1000 + std::log(2.0)));
  CHECK(ops::logsumexp(tensor({-infinity, -infinity})).item() == -infinity);
  CHECK(ops::logsumexp(tensor({-infinity, 0.0})).item() == 0);
  CHECK(ops::logsumexp(tensor({infinity, 0.0, -infinity})).item() == infinity);
  CHECK(std::isnan(ops::logsumexp(tensor({infinity, nan_value})).item()));
  CHECK(ops::logsumexp(full({40000, 3}, -1000), 0).to_vector()[1] == Approx(-1000 + std::log(40000.0)));
}

TEST_CASE("a NaN wins every choice, the first one its index") {
  for (const int64_t n : {5, 40, 3000, 70000}) {
    const Tensor x = arange(0, n, 1, {.dtype = float32});
    for (const int64_t place : {n / 2, n - 1}) ops::fill(ops::select(x, 0, place), nan_value);
    CHECK(std::isnan(ops::max(x).item()));
    CHECK(std::isnan(ops::min(x).item()));
    CHECK(ops::argmax(x).item<int64_t>() == n / 2);
    CHECK(ops::argmin(x).item<int64_t>() == n / 2);
    const Tensor columns =
        ops::to_format(ops::expand(ops::reshape(x, {n, 1}), {n, 3}), MemoryFormat::contiguous);
    CHECK(ops::argmin(columns, 0).to_vector<int64_t>() == std::vector<int64_t>(3, n / 2));
    CHECK(std::isnan(ops::max(columns, 0).to_vector()[2]));
  }
}

TEST_CASE("sums of ten million float32 stay exact") {
  const Tensor x = full({10000000}, 0.1);
  const double right = 10000000.0 * static_cast<double>(0.1F);
  CHECK(std::abs(ops::sum(x).item<double>() / right - 1) < 1e-7);
  CHECK(std::abs(ops::mean(x).item<double>() / static_cast<double>(0.1F) - 1) < 1e-7);
  const Tensor matrix = ops::reshape(x, {1000000, 10});
  for (const double column : ops::sum(matrix, 0).to_vector<double>())
    CHECK(std::abs(column / right * 10 - 1) < 1e-7);
  const Tensor wide = full({1000000}, 0.1, {.dtype = float64});
  CHECK(std::abs(ops::sum(wide).item<double>() / 100000.0 - 1) < 1e-14);
}

TEST_CASE("a sum of float32 leaves the range only where its result does") {
  const float most = std::numeric_limits<float>::max();
  for (const int64_t n : {4, 40, 300, 5000}) {
    const Tensor row = zeros({n});
    for (const int64_t place : {0, 1}) ops::fill(ops::select(row, 0, place), most);
    for (const int64_t place : {2, 3}) ops::fill(ops::select(row, 0, place), -most);
    CHECK(ops::sum(row).item() == 0);
    const Tensor rows = ops::to_format(ops::expand(row, {40, n}), MemoryFormat::contiguous);
    CHECK(ops::mean(rows, 1).to_vector() == std::vector<float>(40, 0));
    const Tensor columns = ops::to_format(ops::transpose(rows, 0, 1), MemoryFormat::contiguous);
    CHECK(ops::sum(columns, 0).to_vector() == std::vector<float>(40, 0));
    ops::fill(ops::select(columns, 1, 7), most);
    CHECK(ops::sum(columns, 0).to_vector()[7] == infinity);
    CHECK(ops::sum(columns, 0).to_vector()[8] == 0);
    ops::fill(ops::select(row, 0, n - 1), -infinity);
    CHECK(ops::sum(row).item() == -infinity);
    ops::fill(ops::select(row, 0, 1), infinity);
    CHECK(std::isnan(ops::sum(row).item()));
  }
}

TEST_CASE("reductions of nothing", "[cpu]") {
  const Tensor nothing = zeros({0, 3});
  CHECK(ops::sum(nothing).item() == 0);
  CHECK(ops::sum(nothing, 0).to_vector() == std::vector<float>{0, 0, 0});
  CHECK(ops::sum(nothing, 1).shape() == Shape{0});
  CHECK(std::isnan(ops::mean(nothing).item()));
  CHECK(std::isnan(ops::var(nothing).item()));
  CHECK(ops::prod(nothing).item() == 1);
  CHECK(ops::norm(nothing).item() == 0);
  CHECK(ops::norm(nothing, {}, {.p = infinity}).item() == 0);
  CHECK(ops::logsumexp(nothing, 0).to_vector() == std::vector<float>(3, -static_cast<float>(infinity)));
  CHECK_FALSE(ops::any(nothing).item<bool>());
  CHECK(ops::all(nothing).item<bool>());
  CHECK(ops::max(nothing, 1).shape() == Shape{0});
  CHECK_THROWS_AS(ops::max(nothing), ShapeError);
  CHECK_THROWS_WITH(ops::max(nothing),
                    "max: needs at least one element to choose from, got [0, 3] float32 cpu reduced to []");
  CHECK_THROWS_WITH(ops::min(nothing, 0), Contains("min: needs at least one element"));
  CHECK_THROWS_WITH(ops::argmax(nothing, 0), Contains("argmax: needs at least one element"));
  CHECK_THROWS_WITH(ops::argmin(nothing), Contains("argmin: needs at least one element"));
}

TEST_CASE("bad dimensions of a reduction are explained", "[cpu]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_AS(ops::sum(x, 2), IndexError);
  CHECK_THROWS_WITH(ops::sum(x, 2), Contains("sum"));
  CHECK_THROWS_AS(ops::mean(x, {0, -2}), ValueError);
  CHECK_THROWS_WITH(ops::mean(x, {0, -2}), "mean: dimension 0 of [2, 3] float32 cpu is named twice");
  CHECK_THROWS_WITH(ops::argmax(x, -3), Contains("argmax"));
}

TEST_CASE("results lie in memory as their input does") {
  const Tensor x = ops::to_format(rand({2, 3, 4, 5}), MemoryFormat::channels_last);
  CHECK(ops::max(x, 0, true).strides() == Strides{60, 1, 15, 3});
  CHECK(ops::sum(x, 0).strides() == Strides{1, 15, 3});
  CHECK(ops::sum(ops::slice(x, 1, 0, 3, 2), 0).is_contiguous());
}
