// The tuner on the other device.

#include "pleat/ops/conv/tune/tune.h"

#include "pleat/autograd/backward.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/device/agree.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::test;

TEST_CASE("device: a tuned convolution", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const Shape input{2, 5, 9, 7};  // of no other test
  const Tensors x{normal(input), normal({4, 5, 3, 3}, 2), normal({4}, 3)};
  const auto on = [&](Device device) {
    Tensors there;
    for (const Tensor& t : x) there.push_back(ops::to_device(ops::cast(t, float32), device));
    return there;
  };
  {
    const Device other(DeviceType::cuda);
    const Tensors there = on(other);
    const auto timings =
        ops::tune_conv(there[0], there[1], there[2], {.padding = 1}, {.warmups = 1, .samples = 2});
    REQUIRE(timings.size() >= 3);  // of each pass
    for (const ops::Timing& timing : timings) {
      INFO(describe(timing));
      CHECK((timing.milliseconds > 0 || !timing.failure.empty()));
    }
  }
  agrees(x, [](const Tensors& t) {
    const ConvPolicy guard{{.benchmark = true}};
    return conv2d(t[0], t[1], t[2], {.padding = 1});
  });
}

TEST_CASE("device: a tuned batch norm changes its running statistics once", "[device]") {
  if (pleat_test::lacks_gpus()) return;
  const Shape input{3, 5, 9, 7};  // of no other test
  const Device other(DeviceType::cuda);
  const auto run = [&](const char* implementation) {
    const auto there = [&](const Tensor& t) { return ops::to_device(ops::cast(t, float32), other); };
    const Tensor x = there(normal(input)).set_requires_grad();
    const Tensor weight = there(normal({5}, 2)).set_requires_grad();
    const Tensor bias = there(normal({5}, 3)).set_requires_grad();
    const Tensor mean = there(normal({5}, 4)), variance = there(uniform({5}, 0.5, 2, 5));
    const Tensor seen = ops::to_device(scalar(3, int64), other);
    const Tensor y =
        batch_norm(x, weight, bias, mean, variance,
                   {.training = true, .num_batches_tracked = seen, .implementation = implementation});
    Tensors all{y.detach(), mean, variance, ops::cast(seen, float64)};
    for (const Tensor& gradient : grad({y}, {x, weight, bias}, {there(normal(input, 6))}))
      all.push_back(gradient);
    return all;
  };
  const Tensors wanted = run("native");
  const ops::BatchNormProblem problem =
      ops::batch_norm_problem("batch_norm", ops::to_device(ops::cast(normal(input), float32), other), {}, {},
                              {}, {}, {.training = true});
  std::size_t able = 0;
  for (const ops::BatchNormImplementation* one : ops::batch_norm_implementations())
    able += one->name() != "reference" && one->unsupported(problem, ops::BatchNormPass::forward).empty();
  ops::Tuner::clear();
  for (int time = 0; time < 2; ++time) {
    const BatchNormPolicy guard{{.benchmark = true}};
    const Tensors got = run("");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(time, i);
      CHECK(relative_error(got[i], wanted[i]) < 2e-5);
    }
    CHECK(ops::Tuner::size() == (able > 1 ? 2 : 0));
  }
  const std::string table = ops::Tuner::table();
  for (const char* pass : {"batch_norm forward training", "batch_norm backward training"})
    CHECK((able < 2 || table.find(pass) != std::string::npos));
  ops::Tuner::clear();
}
