#include "pleat/ops/reduce/scan.h"

#include <algorithm>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

Tensor random(Shape shape, DType dtype) {
  Generator generator(5);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_uniform_(x, 0.5, 2, generator);
  return ops::cast(x, dtype);
}

/// y[i] = step(y[i-1], a[i], b[i]) along one dimension, as plain loops.
template <class Step>
std::vector<double> running(const Tensor& a, const Tensor& b, int64_t dim, bool reverse, Step step) {
  const std::vector<double> p = a.to_vector<double>();
  const std::vector<double> q = b.to_vector<double>();
  std::vector<double> y(p.size());
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < a.rank(); ++d) inner *= a.size(d);
  const int64_t size = a.size(dim);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const int64_t line = i / (inner * size) * inner * size + i % inner;
    if (i / inner % size != 0) continue;
    double last = 0;
    for (int64_t k = 0; k < size; ++k) {
      const int64_t at = line + (reverse ? size - 1 - k : k) * inner;
      const int64_t factor = reverse ? at + inner : at;
      last = step(k == 0, last, k == 0 ? 0 : p[static_cast<std::size_t>(factor)],
                  p[static_cast<std::size_t>(at)], q[static_cast<std::size_t>(at)]);
      y[static_cast<std::size_t>(at)] = last;
    }
  }
  return y;
}

void check_close(const std::vector<double>& got, const std::vector<double>& right, double tolerance) {
  REQUIRE(got.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - right[i]) / std::max(1.0, std::abs(right[i]));
    worst = error <= worst ? worst : error;
  }
  CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("scans are right along every dimension and in every layout") {
  for (const DType dtype : {float64, float32, bfloat16}) {
    const double tolerance = dtype == float64 ? 1e-14 : dtype == float32 ? 1e-7 : 4e-3;
    const Tensor cube = random({3, 5, 200}, dtype);
    for (const Tensor& x : {cube, permute(cube, {2, 0, 1}), slice(cube, 2, 0, 200, 3),
                            random({4, 35, 100}, dtype), random({50, 3, 3}, dtype)})
      for (int64_t dim = 0; dim < 3; ++dim)
        for (const bool reverse : {false, true}) {
          INFO(x.describe() << " along " << dim << (reverse ? " backwards" : ""));
          check_close(cumsum(x, dim, reverse).to_vector<double>(),
                      running(x, x, dim, reverse,
                              [](bool, double last, double, double a, double) { return last + a; }),
                      tolerance);
          const Tensor few = narrow(x, dim, 0, 3);
          check_close(
              cumprod(few, dim, reverse).to_vector<double>(),
              running(few, few, dim, reverse,
                      [](bool first, double last, double, double a, double) { return first ? a : last * a; }),
              tolerance);
          const Tensor b = random(few.shape(), dtype);
          check_close(linear_scan(few, b, dim, reverse).to_vector<double>(),
                      running(few, b, dim, reverse,
                              [](bool, double last, double factor, double, double term) {
                                return factor * last + term;
                              }),
                      tolerance);
        }
  }
}

TEST_CASE("a recurrence of many terms, some of whose factors are 0") {
  const Tensor a = random({3, 2500, 2}, float64);
  const Tensor b = random({3, 2500, 2}, float64);
  for (int64_t i = 0; i < a.numel(); i += 701) ops::fill(a.as_strided({}, {}, i), 0);
  // Beyond 1e308 a product of factors is no number, but the terms stay small when a 0 comes first.
  const Tensor huge = full({200}, 1e200, {.dtype = float64});
  ops::fill(select(huge, 0, 100), 0);
  const Tensor zeros_first = linear_scan(huge, zeros({200}, {.dtype = float64}), 0);
  CHECK(zeros_first.to_vector<double>() == std::vector<double>(200, 0));
  for (const bool reverse : {false, true})
    for (const int64_t dim : {int64_t{0}, int64_t{1}, int64_t{2}})
      check_close(
          linear_scan(a, b, dim, reverse).to_vector<double>(),
          running(a, b, dim, reverse,
                  [](bool, double last, double factor, double, double term) { return factor * last + term; }),
          1e-12);
}

TEST_CASE("scans of integers, of one number and of nothing") {
  CHECK(cumsum(tensor({true, true, false, true}), 0).to_vector<int64_t>() ==
        std::vector<int64_t>{1, 2, 2, 3});
  CHECK(cumprod(tensor({2, 3, 4}), 0, true).to_vector<int64_t>() == std::vector<int64_t>{24, 12, 4});
  CHECK(cumsum(tensor({1, 2}, int32), 0).dtype() == int64);
  CHECK(cumsum(scalar(3.0), 0).item() == 3);
  CHECK(cumsum(zeros({2, 0}), 1).shape() == Shape{2, 0});
  CHECK(cumsum(zeros({0, 2}), 1).shape() == Shape{0, 2});
  CHECK_THROWS_AS(cumsum(zeros({2, 2}), 2), IndexError);
  CHECK_THROWS_WITH(linear_scan(ones({2}), ones({3}), 0), Contains("must have one shape"));
  CHECK_THROWS_WITH(linear_scan(ones({2}), ones({2}, {.dtype = float64}), 0), Contains("one floating type"));
  CHECK_THROWS_AS(linear_scan(tensor({1}), tensor({1}), 0), DTypeError);
}

TEST_CASE("a long running sum of float32 stays exact") {
  const Tensor y = cumsum(full({10000000}, 0.1), 0);
  CHECK(std::abs(select(y, 0, 9999999).item<double>() / (1e7 * static_cast<double>(0.1F)) - 1) < 1e-7);
}

TEST_CASE("shifted moves elements and fills what is left") {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  CHECK(shifted(x, 1, 1, 9).to_vector() == std::vector<float>{9, 1, 2, 9, 4, 5});
  CHECK(shifted(x, 1, -2, 0).to_vector() == std::vector<float>{3, 0, 0, 6, 0, 0});
  CHECK(shifted(x, 0, 5, 1).to_vector() == std::vector<float>{1, 1, 1, 1, 1, 1});
  CHECK(shifted(scalar(2.0), 0, 1, 7).item() == 7);
}
