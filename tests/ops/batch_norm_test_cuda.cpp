#include "pleat/core/base/device.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/limit.h"
#include "pleat/ops/norm/batch_norm.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("batch_norm: the relu's gradient can be had by itself", "[batch_norm][cuda]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice gpu("cuda");
  for (const std::string layout : {"contiguous", "channels_last"})
    for (const DType dtype : {float64, float32, float16, bfloat16})
      for (const Shape& shape : {Shape{3, 8, 4, 4}, Shape{2, 5, 3, 3}}) {
        CAPTURE(layout, name(dtype), shape);
        const Tensor x = laid_out(numbers(shape, dtype, 1), layout);
        const Tensor dy = laid_out(numbers(shape, dtype, 2), layout);
        const Tensor weight = numbers({shape[1]}, dtype, 3), bias = numbers({shape[1]}, dtype, 4);
        const BatchNormOptions options{.training = true, .bounds = {.min = 0}};
        const auto got = ops::batch_norm_forward(x, weight, bias, {}, {}, options);
        const auto problem = ops::batch_norm_problem("batch_norm", x, weight, bias, {}, {}, options);
        const Tensor open = ops::open_gradient(problem, {.dy = dy,
                                                         .x = x,
                                                         .weight = weight,
                                                         .bias = bias,
                                                         .mean = got.mean,
                                                         .rstd = got.rstd,
                                                         .dx = {},
                                                         .dweight = {},
                                                         .dbias = {}});
        CHECK(open.to_vector() == ops::limit_backward(dy, got.y, options.bounds).to_vector());
        CHECK(open.strides() == x.strides());
      }
}
