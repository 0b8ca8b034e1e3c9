// Private header: not installed.
#pragma once

#include "pleat/ops/recurrent/recurrent.h"

namespace pleat {

/// One direction of one layer of a recurrent network over x [L, N, inputs], with the products of its input:
/// W_ih [G H, inputs], W_hh [G H, H] and biases [G H], which may be undefined. One call for those who watch.
/// Throws as `linear` and `recurrent`.
RecurrentResult recurrent_layer(const Tensor& x, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                                const Tensor& b_hh, const Tensor& h, const Tensor& c,
                                const RecurrentOptions& options);

}  // namespace pleat
