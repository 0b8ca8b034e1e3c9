// Private header: not installed.
#pragma once

#include <memory>

#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/matmul/kernels.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/spatial/bounds.h"

/// linear and the activation after it in one pass: the activation is computed while the product's results are
/// in a cache. What nn::Sequential makes of an nn::Linear and what follows it (nn/fusion.h).

namespace pleat {

/// An activation as linear computes it.
class LinearActivation {
 public:
  virtual ~LinearActivation() = default;
  virtual const ops::ElementFunction& function() const = 0;
  /// Whether the gradient is computed from the result; else from what the activation is of.
  virtual bool keeps_result() const = 0;
  /// The gradient of what the activation is of; differentiable.
  virtual Tensor backward(const Tensor& dy, const Tensor& kept) const = 0;
};

using LinearActivationPtr = std::shared_ptr<const LinearActivation>;

/// Of a ReLU, ReLU6, Hardtanh. NaN stays, and passes the gradient on.
LinearActivationPtr linear_limit(const Bounds& bounds);
LinearActivationPtr linear_sigmoid();
LinearActivationPtr linear_tanh();
LinearActivationPtr linear_gelu(GeluApproximation approximation);
LinearActivationPtr linear_silu();
LinearActivationPtr linear_mish();
LinearActivationPtr linear_hardswish();
LinearActivationPtr linear_hardsigmoid();
LinearActivationPtr linear_leaky_relu(double negative_slope);
LinearActivationPtr linear_elu(double alpha);

/// Whether these operands are computed so: on the CPU, of float32 or float64, without autocast.
bool fuses_activation(const Tensor& x, const Tensor& weight);

/// activation(linear(x, weight, bias)) of operands that fuses_activation takes. Throws as linear.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const MatmulOptions& options,
              const LinearActivationPtr& activation);

}  // namespace pleat
