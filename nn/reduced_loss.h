// Private header: not installed.
#pragma once

#include "pleat/nn/loss.h"

/// What losses share.

namespace pleat {

/// Losses of elements or targets, reduced.
Tensor reduced(const Tensor& losses, Reduction reduction);

/// Throws ShapeError unless both have one shape.
void check_pair(const char* op, const Tensor& input, const Tensor& target);

/// In float32 where it is integer, whose differences would wrap around, and of half types under autocast.
Tensor floating_loss_input(const Tensor& x);

}  // namespace pleat
