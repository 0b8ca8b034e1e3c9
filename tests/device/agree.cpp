#include "pleat/tests/device/agree.h"

#include <algorithm>
#include <cmath>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/device/cuda.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

namespace pleat::test {
namespace {

double tolerance(DType dtype) {
  switch (dtype) {
    case float64:
      return 1e-12;
    case float32:
      return 1e-5;
    case float16:
      return 4.0 / 2048;
    case bfloat16:
      return 4.0 / 256;
    default:
      return 0;
  }
}

/// The input in a type, where it is floating, on a device and in a layout.
Tensor prepared(const Tensor& x, DType dtype, Device device, const std::string& layout) {
  if (!x.defined()) return x;
  const Tensor there = ops::to_device(is_floating(x.dtype()) ? ops::cast(x, dtype) : x, device);
  return x.rank() > 2 ? laid_out(there, layout) : there;
}

/// What came of a call: results and gradients, or the words of an error.
struct Outcome {
  Tensors outputs;
  Tensors gradients;  ///< of the floating inputs; undefined where an input has none
  std::string error;
};

Outcome outcome(const Function& f, Tensors inputs, bool differentiable) {
  Tensors leaves;
  if (differentiable)
    for (Tensor& x : inputs)
      if (x.defined() && is_floating(x.dtype())) leaves.push_back(x = x.detach().set_requires_grad());
  Outcome result;
  try {
    result.outputs = f(inputs).tensors();
    if (!differentiable) return result;
    Tensors ys, dys;
    for (const Tensor& y : result.outputs)
      if (y.requires_grad()) {
        ys.push_back(y);
        dys.push_back(ops::to_device(ops::cast(normal(y.shape(), 99), y.dtype()), y.device()));
      }
    result.gradients = grad(ys, leaves, dys, {.allow_unused = true});
  } catch (const Error& error) {
    result = {{}, {}, error.what()};
  }
  return result;
}

void check_same(const Tensor& got, const Tensor& wanted, double slack) {
  REQUIRE(got.defined() == wanted.defined());
  if (!got.defined()) return;
  CHECK(got.dtype() == wanted.dtype());
  REQUIRE(got.shape() == wanted.shape());
  // What is infinite or no number must be the same, and counts for nothing beside the others.
  std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!std::isfinite(b[i]) && (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) a[i] = b[i] = 0;
  CHECK(relative_error(a, b) <= slack * tolerance(wanted.dtype()));
}

void compare(const Tensors& inputs, const Function& f, const AgreeOptions& options, DType dtype,
             const std::string& layout, int gpu = 0) {
  CAPTURE(name(dtype), layout);
  const auto on = [&](Device device) {
    Tensors there;
    for (const Tensor& x : inputs) there.push_back(prepared(x, dtype, device, layout));
    return outcome(f, there, options.differentiable);
  };
  const Outcome wanted = on(Device());
  const Device other(DeviceType::cuda, gpu);
  CAPTURE(name(other));
  const Outcome got = on(other);
  // The words name the tensors' device.
  std::string words = got.error;
  const std::string device = name(other);
  for (std::size_t at = 0; device != "cpu" && (at = words.find(device)) != std::string::npos;)
    words.replace(at, device.size(), "cpu");
  CHECK(words == wanted.error);
  REQUIRE(got.outputs.size() == wanted.outputs.size());
  for (std::size_t i = 0; i < got.outputs.size(); ++i) {
    CAPTURE(i);
    CHECK(got.outputs[i].device() == other);
    check_same(got.outputs[i], wanted.outputs[i], options.slack);
  }
  REQUIRE(got.gradients.size() == wanted.gradients.size());
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    INFO("gradient of floating input " << i);
    check_same(got.gradients[i], wanted.gradients[i], options.slack);
  }
}

}  // namespace

void differences_agree(const Tensors& inputs, const Function& f) {
  if (pleat_test::lacks_gpus()) return;
  const Device other(DeviceType::cuda);
  CAPTURE(name(other));
  Tensors there;
  for (const Tensor& x : inputs) there.push_back(prepared(x, float64, other, "contiguous"));
  Tensors tracked = there;
  for (Tensor& x : tracked)
    if (x.defined() && is_floating(x.dtype())) x = x.detach().set_requires_grad();
  const Tensors outputs = f(tracked).tensors();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].requires_grad() && outputs[i].dtype() == float64)
      CHECK(gradcheck([&](const Tensors& x) { return f(x).tensors()[i]; }, there));
}

void agrees(const Tensors& inputs, const Function& f, AgreeOptions options) {
  if (pleat_test::lacks_gpus()) return;
  const bool floating = std::any_of(inputs.begin(), inputs.end(),
                                    [](const Tensor& x) { return x.defined() && is_floating(x.dtype()); });
  for (const DType dtype : {float64, float32, float16, bfloat16})
    if (floating || dtype == float64) compare(inputs, f, options, dtype, "contiguous");
  for (const std::string& layout : layouts())
    if (layout != "contiguous") compare(inputs, f, options, float32, layout);
  if (options.differentiable && options.differences) differences_agree(inputs, f);
  if (cuda::device_count() > 1) {
    compare(inputs, f, options, float32, "contiguous", 1);
    CHECK(cuda::current_device() == Device(DeviceType::cuda));
  }
}

}  // namespace pleat::test
