#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Raw choices between elements, broadcasting.

namespace pleat::ops {

/// `a` where the condition holds, else `b`, in their promoted type; a plain number is weak beside a tensor,
/// two numbers give bool, int64 or float32 by their category. Throws DTypeError unless the condition is bool,
/// ShapeError when the three do not broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
Tensor where(const Tensor& condition, Scalar a, Scalar b);

/// `value` where the mask is true, else `x`, in x's type.
/// Throws DTypeError unless the mask is bool and x's type can hold the number's category.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// The same into `x` itself, to whose shape the mask must broadcast.
void masked_fill_into(const Tensor& x, const Tensor& mask, Scalar value);

}  // namespace pleat::ops
