#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Choices between elements, broadcasting; differentiable.

namespace pleat {

/// `a` where the condition (bool) holds, else `b`. The type is their promoted one; a plain number is weak
/// beside a tensor, two numbers give bool, int64 or float32 by their category. Throws DTypeError unless the
/// condition is bool, ShapeError when the three do not broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
Tensor where(const Tensor& condition, Scalar a, Scalar b);

/// `value` where the mask (bool) is true, else `x`, in x's type. Both broadcast. Throws DTypeError unless the
/// mask is bool and x's type can hold the number's category.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
/// In place: the mask must broadcast to x. Returns `x`.
const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);

/// The elements on and below a diagonal (tril), on and above it (triu) of each matrix [..., N, M]; the others
/// are 0. `diagonal` 0 is the main one, 1 the next above. Throw ShapeError unless x has two dimensions.
Tensor tril(const Tensor& x, Integer diagonal = 0);
Tensor triu(const Tensor& x, Integer diagonal = 0);

}  // namespace pleat
