#include <cmath>
#include <limits>

#include "pleat/core/device/cuda.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Operands {
  Tensor x, w, bias, y;
};

Operands operands(DType dtype) {
  Generator generator(3);
  const Tensor x = randn({2, 3, 4, 5, 5}, {.dtype = float64}, generator).to(dtype);
  const Tensor w = randn({4, 3, 2, 3, 3}, {.dtype = float64}, generator).to(dtype);
  const Tensor bias = randn({4}, {.dtype = float64}, generator).to(dtype);
  return {x, w, bias, conv3d(x, w, bias, {.implementation = "reference"})};
}

double error_of(const Operands& o) {
  const ops::ConvOperand bias("bias", o.bias);
  const ops::ConvProblem problem =
      ops::make_conv_problem("conv3d", 3, {"input", o.x}, {"weight", o.w}, {}, nullptr, &bias);
  return ops::reference_error(problem, ops::ConvPass::forward, o.x, o.w, o.bias, o.y);
}

void set(const Tensor& t, int64_t place, double value) {
  ops::fill(t.as_strided({1}, {1}, t.offset() + place), value);
}

}  // namespace

TEST_CASE("the check of a first use copes with infinities and NaN", "[conv]") {
  Operands o = operands(float32);
  CHECK(error_of(o) < 1e-6);
  set(o.y, 7, 100);
  CHECK(error_of(o) > 0.1);
  // What is wrong in itself is wrong.
  set(o.y, 7, not_a_number);
  CHECK(error_of(o) == infinity);
  set(o.y, 7, infinity);
  CHECK(error_of(o) == infinity);
  // Where operands are not finite, results are not, in more or fewer places.
  for (const double bad : {not_a_number, infinity, -infinity}) {
    CAPTURE(bad);
    o = operands(float32);
    set(o.x, 20, bad);
    CHECK(std::isnan(error_of({o.x, o.w, o.bias, o.y + not_a_number})));
    o.y = conv3d(o.x, o.w, o.bias, {.implementation = "reference"});
    CHECK(error_of(o) < 1e-6);
    // Elements that no bad operand reaches still count.
    set(o.y, o.y.numel() - 1, 50);
    CHECK(error_of(o) > 0.1);
    o = operands(float32);
    o.bias = o.bias + bad;
    CHECK(std::isnan(error_of(o)));
  }
  // What the type cannot hold does not count, nor do squares overflow.
  for (const DType dtype : {float16, bfloat16, float32, float64}) {
    CAPTURE(name(dtype));
    o = operands(dtype);
    const double large = dtype == float16 ? 3e4 : dtype == float64 ? 1e307 : 1e38;
    set(o.x, 20, large);
    o.y = conv3d(o.x, o.w, o.bias, {.implementation = "reference"});
    CHECK(error_of(o) < 1e-2);
  }
}

TEST_CASE("cuda: cuDNN's first use with infinities and NaN among the operands", "[conv][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const Device gpu(DeviceType::cuda);
  // Sizes of their own, so that each is a first use.
  int64_t size = 5;
  for (const double bad : {not_a_number, infinity, -infinity})
    for (const int where : {0, 1, 2}) {
      CAPTURE(bad, where);
      ++size;
      const Tensor host_x = full({1, 2, 3, 4, size}, 0.5, {.dtype = float32});
      const Tensor host_w = full({2, 2, 2, 2, 2}, 0.25, {.dtype = float32});
      if (where == 0) set(host_x, 3, bad);
      if (where == 1) set(host_w, 5, bad);
      const Tensor x = host_x.to(gpu).set_requires_grad(), w = host_w.to(gpu).set_requires_grad();
      const Tensor bias = ops::to_device(full({2}, where == 2 ? bad : 1.0, {.dtype = float32}), gpu);
      for (int i = 0; i < 2; ++i) {
        const Tensor y = conv3d(x, w, bias, {.implementation = "cudnn"});
        y.backward(ops::to_device(full(y.shape(), where == 2 ? bad : 1.0, {.dtype = float32}), gpu));
        bool all_finite = true;
        for (const double value : y.to_vector<double>()) all_finite = all_finite && std::isfinite(value);
        CHECK_FALSE(all_finite);
      }
    }
}
