// Host and device.
#include "pleat/ops/elementwise/activation.h"

#include <cmath>

#include "pleat/ops/elementwise/activation_functors.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

void check_softplus(const SoftplusOptions& options) {
  check<ValueError>(options.beta > 0 && std::isfinite(options.beta),
                    "softplus: beta must be above 0 and finite, got {}", options.beta);
  check<ValueError>(!std::isnan(options.threshold), "softplus: threshold must be a number, got {}",
                    options.threshold);
}

void check_finite(const char* op, const char* what, double value) {
  check<ValueError>(std::isfinite(value), "{}: {} must be finite, got {}", op, what, value);
}

}  // namespace

Tensor relu(const Tensor& x) { return unary_number("relu", x, Relu{}); }
void relu_into(const Tensor& out, const Tensor& x) { unary_number_into("relu", out, x, Relu{}); }
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("relu_backward", dy, y, ReluBackward{});
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  check_finite("leaky_relu", "negative_slope", negative_slope);
  return unary_floating("leaky_relu", x, LeakyRelu{negative_slope});
}
Tensor leaky_relu_backward(const Tensor& dy, const Tensor& x, double negative_slope) {
  return binary_floating("leaky_relu_backward", dy, x, LeakyReluBackward{negative_slope});
}

Tensor elu(const Tensor& x, double alpha) {
  check_finite("elu", "alpha", alpha);
  return unary_floating("elu", x, Elu{alpha});
}
Tensor elu_backward(const Tensor& dy, const Tensor& x, double alpha) {
  return binary_floating("elu_backward", dy, x, EluBackward{alpha});
}

Tensor sigmoid(const Tensor& x) { return unary_floating("sigmoid", x, Sigmoid{}); }
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("sigmoid_backward", dy, y, SigmoidBackward{});
}

Tensor log_sigmoid(const Tensor& x) { return unary_floating("log_sigmoid", x, LogSigmoid{}); }
Tensor log_sigmoid_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("log_sigmoid_backward", dy, x, LogSigmoidBackward{});
}

Tensor softplus(const Tensor& x, SoftplusOptions options) {
  check_softplus(options);
  return unary_floating("softplus", x, Softplus{options.beta, options.threshold});
}
Tensor softplus_backward(const Tensor& dy, const Tensor& x, SoftplusOptions options) {
  check_softplus(options);
  return binary_floating("softplus_backward", dy, x, SoftplusBackward{options.beta, options.threshold});
}

Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh) return unary_floating("gelu", x, GeluTanh{});
  return unary_floating("gelu", x, Gelu{});
}
Tensor gelu_backward(const Tensor& dy, const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh)
    return binary_floating("gelu_backward", dy, x, GeluTanhBackward{});
  return binary_floating("gelu_backward", dy, x, GeluBackward{});
}

Tensor silu(const Tensor& x) { return unary_floating("silu", x, Silu{}); }
Tensor silu_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("silu_backward", dy, x, SiluBackward{});
}

Tensor mish(const Tensor& x) { return unary_floating("mish", x, Mish{}); }
Tensor mish_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("mish_backward", dy, x, MishBackward{});
}

Tensor hardswish(const Tensor& x) { return unary_floating("hardswish", x, Hardswish{}); }
Tensor hardswish_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("hardswish_backward", dy, x, HardswishBackward{});
}

}  // namespace pleat::ops
