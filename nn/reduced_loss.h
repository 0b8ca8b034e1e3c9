// Private header: not installed.
#pragma once

#include "pleat/nn/loss.h"
#include "pleat/ops/loss/loss_formulas.h"

/// What losses share.

namespace pleat {

/// In float32 where it is integer, whose differences would wrap around, and of half types under autocast.
Tensor floating_loss_input(const Tensor& x);

}  // namespace pleat
