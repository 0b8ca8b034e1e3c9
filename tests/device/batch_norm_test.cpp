// Every implementation of batch norm on the other device against the formulas in float64 on the CPU.

#include <set>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;

namespace {

struct BatchNormCase {
  Shape shape;
  DType dtype;
  std::string layout;
  bool training;
  bool adds;  ///< a residual, and then a relu
};

/// Result, running statistics and gradients.
Tensors run(const BatchNormCase& c, DType dtype, Device device, const std::string& implementation) {
  // What was rounded to the case's type is the problem, for the formulas too.
  const auto there = [&](const Tensor& x) {
    return ops::to_device(ops::cast(ops::cast(x, c.dtype), dtype), device);
  };
  const Shape channels{c.shape[1]};
  const Tensor x = laid_out(there(normal(c.shape)), c.layout).set_requires_grad();
  const Tensor weight = there(normal(channels, 2)).set_requires_grad();
  const Tensor bias = there(normal(channels, 3)).set_requires_grad();
  const Tensor mean = there(normal(channels, 4));
  const Tensor variance = there(uniform(channels, 0.5, 2, 5));
  Tensor residual;
  if (c.adds) residual = there(normal(c.shape, 7)).set_requires_grad();
  const Tensor seen = ops::to_device(scalar(3, int64), device);
  const Tensor y = batch_norm(x, weight, bias, mean, variance,
                              {.training = c.training,
                               .residual = residual,
                               .bounds = c.adds ? Bounds{.min = 0} : Bounds(),
                               .num_batches_tracked = seen,
                               .implementation = implementation});
  Tensors result{y.detach(), mean, variance};
  std::vector<Tensor> inputs{x, weight, bias};
  if (c.adds) inputs.insert(inputs.begin(), residual);
  for (const Tensor& gradient : grad({y}, inputs, {laid_out(there(normal(c.shape, 6)), c.layout)}))
    result.push_back(gradient);
  CHECK(seen.item<int64_t>() == (c.training ? 4 : 3));
  return result;
}

}  // namespace

TEST_CASE("device: every implementation of batch norm agrees with the formulas", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  std::set<std::string> names, checked;
  for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
    names.emplace(one->name());
  for (const Shape& shape :
       {Shape{40, 5}, {2, 3, 4, 5}, {3, 16, 9, 7}, {2, 2, 3, 2, 4}, {2, 100, 3, 3}, {1, 2, 50, 70}})
    for (const DType dtype : {float64, float32, float16, bfloat16})
      for (const std::string& layout : layouts())
        for (const auto& [training, adds] :
             {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
          const BatchNormCase c{shape, dtype, layout, training, adds};
          const Tensors wanted = run(c, float64, Device(), "reference");
          const Device other(DeviceType::cuda);
          for (const std::string& implementation : names) {
            CAPTURE(implementation, shape, name(dtype), layout, training, adds, name(other));
            Tensors got;
            try {
              got = run(c, dtype, other, implementation);
            } catch (const ValueError&) {
              continue;  // it cannot compute this
            }
            checked.insert(implementation);
            // One rounding to the type; gradients of parameters are sums whose terms partly cancel.
            const double tolerance = dtype == float64   ? 1e-12
                                     : dtype == float32 ? 2e-6
                                     : dtype == float16 ? 1e-3
                                                        : 8e-3;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
              CAPTURE(i);
              // Two roundings, before and after the addition, open the relu elsewhere.
              if (adds && is_half(dtype) && implementation == "cudnn" && i >= 3) continue;
              CHECK(relative_error(got[i], wanted[i]) < (i + 2 < wanted.size() ? 1 : 10) * tolerance);
            }
          }
        }
  CHECK(checked.contains("native"));
  CHECK(checked.contains("reference"));
}
