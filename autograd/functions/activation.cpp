#include "pleat/autograd/functions/activation.h"

#include <numbers>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/math.h"
#include "pleat/autograd/functions/select.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"

/// Backward takes the raw function that does it in one pass, unless it is itself recorded (a graph of
/// gradients is wanted): then the same formula is written with differentiable functions. The piecewise linear
/// ones need no second formula: their backward passes are linear in dy and their own adjoints.

namespace pleat {
namespace {

Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return record("relu_backward", ops::relu_backward(dy, y),
                {grad_of(dy, [y = saved(y)](const Tensor& ddx) { return relu_backward(ddx, *y); })});
}

Tensor leaky_relu_backward(const Tensor& dy, const Tensor& x, double slope) {
  return record("leaky_relu_backward", ops::leaky_relu_backward(dy, x, slope),
                {grad_of(dy, [x = saved(x), slope](const Tensor& ddx) {
                  return leaky_relu_backward(ddx, *x, slope);
                })});
}

Tensor elu_backward(const Tensor& dy, const Tensor& x, double alpha) {
  // Bounded, so that where x is large its exponential does not become inf * 0 in second derivatives.
  return where(x > 0, dy, dy * (exp(clamp(x, {.max = 0})) * alpha));
}

Tensor softplus_backward(const Tensor& dy, const Tensor& x, const SoftplusOptions& options) {
  const Tensor scaled = x * options.beta;
  return where(scaled > options.threshold, dy, dy * sigmoid(scaled));
}

Tensor gelu_backward(const Tensor& dy, const Tensor& x) {
  const Tensor cdf = (erf(x * (std::numbers::sqrt2 / 2)) + 1) * 0.5;
  const Tensor pdf = exp(square(x) * -0.5) * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
  return dy * (cdf + x * pdf);
}

Tensor gelu_tanh_backward(const Tensor& dy, const Tensor& x) {
  constexpr double scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
  constexpr double cubic = 0.044715;
  const Tensor t = tanh((x + pow(x, 3) * cubic) * scale);
  const Tensor inner = (square(x) * (3 * cubic) + 1) * scale;
  return dy * ((t + 1) + x * (1 - square(t)) * inner) * 0.5;
}

Tensor silu_backward(const Tensor& dy, const Tensor& x) {
  const Tensor s = sigmoid(x);
  return dy * s * (x * (1 - s) + 1);
}

Tensor mish_backward(const Tensor& dy, const Tensor& x) {
  const Tensor t = tanh(softplus(x));
  return dy * (t + clamp(x, {.max = 20}) * sigmoid(x) * (1 - square(t)));  // 1 at infinity
}

/// Linear in dy, and its own adjoint.
Tensor hardtanh_backward(const Tensor& dy, const Tensor& x, const ClampOptions& bounds) {
  return record("hardtanh_backward", ops::hardtanh_backward(dy, x, bounds),
                {grad_of(dy, [x = saved(x), bounds](const Tensor& ddx) {
                  return hardtanh_backward(ddx, *x, bounds);
                })});
}

Tensor hardswish_backward(const Tensor& dy, const Tensor& x) {
  return where(x <= -3, 0, where(x >= 3, dy, dy * (x * (1.0 / 3) + 0.5)));
}

}  // namespace

Tensor relu(const Tensor& x) {
  const Tensor y = ops::relu(x);
  return record("relu", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return relu_backward(dy, *y); })});
}

const Tensor& relu_(const Tensor& x) {
  if (changes_tape(x))
    replace_in_place("relu_", x, relu);
  else
    ops::relu_into(x, x);
  return x;
}

Tensor leaky_relu(const Tensor& x, Real slope) {
  return record(
      "leaky_relu", ops::leaky_relu(x, slope),
      {grad_of(x, [x = saved(x), slope](const Tensor& dy) { return leaky_relu_backward(dy, *x, slope); })});
}

Tensor elu(const Tensor& x, Real alpha) {
  return record("elu", ops::elu(x, alpha), {grad_of(x, [x = saved(x), alpha](const Tensor& dy) {
                  return grad_enabled() ? elu_backward(dy, *x, alpha) : ops::elu_backward(dy, *x, alpha);
                })});
}

Tensor sigmoid(const Tensor& x) {
  const Tensor y = ops::sigmoid(x);
  return record("sigmoid", y, {grad_of(x, [y = saved(y)](const Tensor& dy) {
                  return grad_enabled() ? dy * (*y * (1 - *y)) : ops::sigmoid_backward(dy, *y);
                })});
}

Tensor log_sigmoid(const Tensor& x) {
  return record("log_sigmoid", ops::log_sigmoid(x), {grad_of(x, [x = saved(x)](const Tensor& dy) {
                  return grad_enabled() ? dy * sigmoid(-*x) : ops::log_sigmoid_backward(dy, *x);
                })});
}

Tensor softplus(const Tensor& input, SoftplusOptions options) {
  const Tensor x = autocast_to_float32(input);
  return record("softplus", ops::softplus(x, options), {grad_of(x, [x = saved(x), options](const Tensor& dy) {
                  return grad_enabled() ? softplus_backward(dy, *x, options)
                                        : ops::softplus_backward(dy, *x, options);
                })});
}

Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  return record(
      "gelu", ops::gelu(x, approximation), {grad_of(x, [x = saved(x), approximation](const Tensor& dy) {
        if (!grad_enabled()) return ops::gelu_backward(dy, *x, approximation);
        return approximation == GeluApproximation::tanh ? gelu_tanh_backward(dy, *x) : gelu_backward(dy, *x);
      })});
}

Tensor silu(const Tensor& x) {
  return record("silu", ops::silu(x), {grad_of(x, [x = saved(x)](const Tensor& dy) {
                  return grad_enabled() ? silu_backward(dy, *x) : ops::silu_backward(dy, *x);
                })});
}

Tensor mish(const Tensor& x) {
  return record("mish", ops::mish(x), {grad_of(x, [x = saved(x)](const Tensor& dy) {
                  return grad_enabled() ? mish_backward(dy, *x) : ops::mish_backward(dy, *x);
                })});
}

Tensor hardswish(const Tensor& x) {
  return record("hardswish", ops::hardswish(x), {grad_of(x, [x = saved(x)](const Tensor& dy) {
                  return grad_enabled() ? hardswish_backward(dy, *x) : ops::hardswish_backward(dy, *x);
                })});
}

Tensor hardsigmoid(const Tensor& x) { return hardtanh(x * (1.0 / 6) + 0.5, 0, 1); }

Tensor hardtanh(const Tensor& x, Real min, Real max) {
  check<ValueError>(min <= max, "hardtanh: needs min <= max, got {} and {}", min, max);
  const ClampOptions bounds{.min = double{min}, .max = double{max}};
  const RecordOp range("hardtanh", x);
  return record(
      "hardtanh", ops::clamp(x, bounds),
      {grad_of(x, [x = saved(x), bounds](const Tensor& dy) { return hardtanh_backward(dy, *x, bounds); })});
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0, 6); }

}  // namespace pleat
