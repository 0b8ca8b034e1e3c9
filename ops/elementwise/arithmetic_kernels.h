#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Raw arithmetic, element by element, broadcasting; operands of different types are promoted
/// (core/tensor/dtype.h). All throw ShapeError when shapes do not broadcast and DeviceError when devices
/// differ.

namespace pleat::ops {

Tensor add(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
/// True division: integers give float32.
Tensor divide(const Tensor& a, const Tensor& b);
Tensor negate(const Tensor& x);

/// Into a tensor that is there, which may be `a` or `b` itself; the result is converted to `out`'s type.
void add_into(const Tensor& out, const Tensor& a, const Tensor& b);
void subtract_into(const Tensor& out, const Tensor& a, const Tensor& b);
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b);
void divide_into(const Tensor& out, const Tensor& a, const Tensor& b);

/// A tensor of rank 0 that takes part in arithmetic with `like` as a weak number does. Throws ValueError
/// naming `op` when that type cannot hold it.
Tensor number_like(Number number, const Tensor& like, const char* op = "number");

}  // namespace pleat::ops
