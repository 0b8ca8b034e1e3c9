#pragma once

#include <functional>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat {

struct GradcheckOptions {
  double step = 1e-6;      ///< of the central differences
  double absolute = 1e-5;  ///< tolerated: absolute + relative * |numerical|
  double relative = 1e-3;
};

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// Compares the tape's gradients of `function` with central differences, for every element of every floating
/// input, against a fixed random weighting of the outputs. Inputs are float64 (else DTypeError) and stay
/// unchanged. Throws AutogradError that names input, element, both values; returns true so that it can stand
/// in a CHECK.
bool gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
               GradcheckOptions options = {});

/// The same for the gradient of the gradient: differentiates x, dy -> dx of `function`.
bool gradgradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   GradcheckOptions options = {});

}  // namespace pleat
