#pragma once

#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"

/// Gradients kept in bounds, between backward and an optimiser's step. Parameters without a gradient are
/// passed over; a gradient that several have counts once. Both throw ValueError, with the reason, when no
/// parameter has one.

namespace pleat::optim {

struct ClipGradNormOptions {
  Required<double> max_norm;
  double norm_type = 2;             ///< infinity: the largest element
  bool error_if_nonfinite = false;  ///< the host then waits for the norm
};

/// Multiplies all gradients by max_norm / (norm + 1e-6) where their norm, as one vector, is larger (Pascanu,
/// Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013). Returns the norm
/// before: float64 of rank 0, where the gradients are. When it is NaN or infinite, gradients stay as they
/// are, or NumericError is thrown. Three launches for all gradients of a GPU, for which the host waits only
/// where norms are to be checked or gradients lie on several devices; a fixed order of summation. Throws
/// ValueError unless max_norm >= 0 and norm_type > 0.
Tensor clip_grad_norm_(const std::vector<Tensor>& params, ClipGradNormOptions options);

struct ClipGradValueOptions {
  Required<double> clip_value;
};

/// Moves each element of each gradient into [-clip_value, clip_value], in one launch on a GPU. Throws
/// ValueError unless clip_value >= 0.
void clip_grad_value_(const std::vector<Tensor>& params, ClipGradValueOptions options);

}  // namespace pleat::optim
