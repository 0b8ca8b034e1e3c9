// Private header: not installed.
#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// Into a tensor that is there, which may be `a` or `b` itself; the result is converted to `out`'s type.
void add_into(const Tensor& out, const Tensor& a, const Tensor& b);
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b);

/// A tensor of rank 0 that takes part in arithmetic with `like` as a weak number does. Throws ValueError
/// naming `op` when that type cannot hold it.
Tensor number_like(Number number, const Tensor& like, const char* op = "number");

}  // namespace pleat::ops
