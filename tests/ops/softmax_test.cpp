#include "pleat/ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/softmax/kernels.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor random(Shape shape, DType dtype, uint64_t seed = 5) {
  Generator generator(seed);
  const Tensor x = empty(std::move(shape), {.dtype = float64});
  fill_uniform_(x, -6, 6, generator);
  return ops::cast(x, dtype);
}

/// Calls `line` with the elements along `dim`, and puts what it leaves there in their place.
template <class F>
std::vector<double> along(const std::vector<Tensor>& inputs, int64_t dim, F line) {
  std::vector<std::vector<double>> values;
  for (const Tensor& input : inputs) values.push_back(input.to_vector<double>());
  const Tensor& x = inputs[0];
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < x.rank(); ++d) inner *= x.size(d);
  const auto size = static_cast<std::size_t>(x.size(dim));
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i / inner % x.size(dim) != 0) continue;
    std::vector<std::vector<double>> lines(inputs.size(), std::vector<double>(size));
    const auto at = [&](std::size_t k) {
      return static_cast<std::size_t>(i + static_cast<int64_t>(k) * inner);
    };
    for (std::size_t v = 0; v < values.size(); ++v)
      for (std::size_t k = 0; k < size; ++k) lines[v][k] = values[v][at(k)];
    line(lines);
    for (std::size_t k = 0; k < size; ++k) values[0][at(k)] = lines[0][k];
  }
  return values[0];
}

using LineValues = std::vector<std::vector<double>>;

void softmax_line(LineValues& v) {
  double total = 0;
  for (const double x : v[0]) total += std::exp(x);
  for (double& x : v[0]) x = std::exp(x) / total;
}
void log_softmax_line(LineValues& v) {
  double total = 0;
  for (const double x : v[0]) total += std::exp(x);
  for (double& x : v[0]) x -= std::log(total);
}
/// v[0] = dy becomes dx, v[1] = y.
void softmax_backward_line(LineValues& v) {
  double total = 0;
  for (std::size_t k = 0; k < v[0].size(); ++k) total += v[0][k] * v[1][k];
  for (std::size_t k = 0; k < v[0].size(); ++k) v[0][k] = v[1][k] * (v[0][k] - total);
}
void log_softmax_backward_line(LineValues& v) {
  double total = 0;
  for (const double dy : v[0]) total += dy;
  for (std::size_t k = 0; k < v[0].size(); ++k) v[0][k] -= std::exp(v[1][k]) * total;
}

void check_close(const Tensor& got, const std::vector<double>& right, double tolerance) {
  const std::vector<double> values = got.to_vector<double>();
  REQUIRE(values.size() == right.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(values[i] - right[i]) / std::max(1.0, std::abs(right[i]));
    worst = error <= worst ? worst : error;
  }
  CHECK(worst <= tolerance);
}

using Function = Tensor (*)(const Tensor&, Integer);

void check_against_torch(const char* op, Function function) {
  for (const test::Json& wanted : test::fixture_cases("layers", op)) {
    INFO(wanted["name"]);
    const Tensor x = test::tensors_from(wanted["inputs"]).begin()->second.set_requires_grad();
    const Tensor y = function(x, wanted["options"]["dim"].get<int64_t>());
    y.backward(test::tensor_from(wanted["grad_output"]));
    const auto close = [](const Tensor& got, const Tensor& right) {
      return max(abs(got.detach() - right)).item<double>() < 1e-12;
    };
    CHECK(close(y, test::tensor_from(wanted["outputs"]["y"])));
    CHECK(close(x.grad(), test::tensors_from(wanted["grads"]).begin()->second));
  }
}

}  // namespace

TEST_CASE("softmax and log_softmax agree with PyTorch") {
  check_against_torch("softmax", softmax);
  check_against_torch("log_softmax", log_softmax);
}

TEST_CASE("softmax of an empty batch has gradients of its shape") {
  const Tensor x = zeros({0, 3}).set_requires_grad();
  sum(softmax(x, 1) + log_softmax(x, 1)).backward();
  CHECK(x.grad().shape() == Shape{0, 3});
}

TEST_CASE("softmax and its backward are right along every dimension and in every layout") {
  for (const DType dtype : {float64, float32, bfloat16}) {
    const double tolerance = dtype == float64 ? 1e-13 : dtype == float32 ? 1e-5 : 4e-2;
    const Tensor cube = random({3, 17, 150}, dtype);
    const Tensor image = random({2, 3, 5, 7}, dtype);
    for (const Tensor& x : {cube, permute(cube, {2, 0, 1}), slice(cube, 2, 0, 150, 3), image,
                            ops::to_format(image, MemoryFormat::channels_last), random({2, 3001}, dtype),
                            random({2, 600, 9}, dtype)})
      for (int64_t dim = 0; dim < x.rank(); ++dim) {
        INFO(x.describe() << " along " << dim);
        const Tensor dy = random(x.shape(), dtype, 9);
        const Tensor y = softmax(x, dim);
        CHECK(y.dtype() == dtype);
        check_close(y, along({x}, dim, softmax_line), tolerance);
        check_close(ops::softmax_backward("softmax", dy, y, dim, false),
                    along({dy, y}, dim, softmax_backward_line), tolerance);
        const Tensor log_y = log_softmax(x, dim - x.rank());
        check_close(log_y, along({x}, dim, log_softmax_line), tolerance);
        check_close(ops::softmax_backward("log_softmax", dy, log_y, dim, true),
                    along({dy, log_y}, dim, log_softmax_backward_line), 4 * tolerance);
      }
    CHECK(softmax(ops::to_format(image, MemoryFormat::channels_last), 1).memory_format() ==
          MemoryFormat::channels_last);
  }
}

TEST_CASE("softmax and its backward are right for many rows of any length") {
  for (int64_t n = 1; n < 70; ++n) {
    INFO("rows of " << n);
    const Tensor x = random({19, n}, float32), dy = random({19, n}, float32, 9);
    ops::fill(select(select(x, 0, 3), 0, n - 1), std::nan(""));
    const auto rows = [](const Tensor& of) { return slice(of, 0, 4, 19); };
    const Tensor y = softmax(x, 1), log_y = log_softmax(x, 1);
    for (const Tensor& result : {y, log_y}) {
      const auto row = select(result, 0, 3).to_vector();
      CHECK(std::all_of(row.begin(), row.end(), [](float v) { return std::isnan(v); }));
    }
    check_close(rows(y), along({rows(x)}, 1, softmax_line), 1e-5);
    check_close(rows(log_y), along({rows(x)}, 1, log_softmax_line), 1e-5);
    check_close(rows(ops::softmax_backward("softmax", dy, y, 1, false)),
                along({rows(dy), rows(y)}, 1, softmax_backward_line), 1e-5);
    check_close(rows(ops::softmax_backward("log_softmax", dy, log_y, 1, true)),
                along({rows(dy), rows(log_y)}, 1, log_softmax_backward_line), 4e-5);
  }
}

TEST_CASE("softmax stands large, infinite and missing numbers") {
  CHECK(softmax(tensor({1000.0, 1000.0}), 0).to_vector() == std::vector<float>{0.5, 0.5});
  CHECK(softmax(tensor({-infinity, 3.0}), 0).to_vector() == std::vector<float>{0, 1});
  CHECK(softmax(tensor({-infinity, 3.0}, float64), 0).to_vector<double>() == std::vector<double>{0, 1});
  CHECK(log_softmax(tensor({-infinity, 3.0}), 0).to_vector() ==
        std::vector<float>{-std::numeric_limits<float>::infinity(), 0});
  const Tensor columns = transpose(tensor({{-1000.0, -1000.0}, {-infinity, 3.0}}), 0, 1);
  CHECK(softmax(ops::copy(columns), 0).to_vector() == std::vector<float>{0.5, 0, 0.5, 1});
  CHECK(std::isnan(softmax(tensor({-infinity, -infinity}), 0).to_vector()[0]));
  CHECK(std::isnan(softmax(tensor({0.0, std::nan("")}), 0).to_vector()[0]));
  CHECK(softmax(scalar(5.0), 0).item() == 1);
  CHECK(softmax(tensor({1, 1}), 0).dtype() == float32);
  CHECK(softmax(zeros({0, 3}), 1).shape() == Shape{0, 3});
  CHECK(log_softmax(zeros({3, 0}), 1).shape() == Shape{3, 0});
  CHECK_THROWS_AS(softmax(zeros({2, 3}), 2), IndexError);
}
