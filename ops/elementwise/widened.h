// Private header: not installed.
#pragma once

#include "pleat/autograd/copy.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// A half type's tensor as float32; others as they are. Kernels compute half types in float32. A derivative
/// that runs as several tensor functions, because a graph of gradients is recorded, widens what it starts
/// from: what it computes on the way may overflow, or cancel, in a half type. The tape rounds the result.
inline Tensor widened(const Tensor& x) { return x.defined() ? cast(x, compute_dtype(x.dtype())) : x; }

}  // namespace pleat
