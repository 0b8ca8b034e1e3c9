// Private header: not installed.
#pragma once

#include "pleat/nn/loss.h"

/// What losses share.

namespace pleat {

/// Losses of elements or targets, reduced.
Tensor reduced(const Tensor& losses, Reduction reduction);

/// In float32 where it is integer, whose differences would wrap around, and of half types under autocast.
Tensor floating_loss_input(const Tensor& x);

}  // namespace pleat
