#pragma once

#include <vector>

#include "pleat/core/base/required.h"
#include "pleat/core/tensor/tensor.h"

/// Limits gradients, between backward and an optimiser's step. Parameters without a gradient are
/// skipped; a gradient that several share counts once. Both throw ValueError, with the reason, when
/// no parameter has a gradient.

namespace pleat::optim {

struct ClipGradNormOptions {
  Required<double> max_norm;
  double norm_type = 2;             ///< infinity: the largest element
  bool error_if_nonfinite = false;  ///< the host then waits for the norm
};

/// Multiplies all gradients by max_norm / (norm + 1e-6) where their norm, as one vector, is larger
/// (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013).
/// Returns the norm before: float64 of rank 0, on the device of the gradients. When it is NaN or
/// infinite, gradients are unchanged, or NumericError is thrown. On a GPU it takes three launches
/// for all gradients; the host waits only where the norm is checked or gradients are on several
/// devices. The order of summation is fixed. Throws ValueError unless max_norm >= 0 and norm_type >
/// 0.
Tensor clip_grad_norm_(const std::vector<Tensor>& params, ClipGradNormOptions options);

struct ClipGradValueOptions {
  Required<double> clip_value;
};

/// Moves each element of each gradient into [-clip_value, clip_value], in one launch on a GPU. Throws
/// ValueError unless clip_value >= 0.
void clip_grad_value_(const std::vector<Tensor>& params, ClipGradValueOptions options);

}  // namespace pleat::optim
