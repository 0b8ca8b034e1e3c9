#pragma once

#include <vector>

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// The functions of ops/ that the tape itself calls. Their families define them and have their relatives: the
/// headers named below include this one.

namespace pleat {

// ops/elementwise/arithmetic.h
Tensor add(const Tensor& a, const Tensor& b);              ///< a + b
Tensor multiply(const Tensor& a, const Tensor& b);         ///< a * b
const Tensor& add_(const Tensor& x, const Tensor& other);  ///< in place
const Tensor& fill_(const Tensor& x, Scalar value);        ///< all elements become `value`

// ops/reduce/reduce.h
/// The sum over what broadcasting from `shape` to x's shape had repeated: undoes it for gradients.
/// Throws ShapeError when x's shape cannot come from `shape`.
Tensor sum_to(const Tensor& x, const Sizes& shape);

// ops/shape/shape.h
/// x without the dimension `dim`, at `index`: a view. Throws IndexError outside of the range.
Tensor select(const Tensor& x, Integer dim, Integer index);

namespace detail {
/// Copies each tensor of `from` into its fellow in `to`, converting: one launch for all on a GPU.
void copy_all(const std::vector<Tensor>& to, const std::vector<Tensor>& from);  // ops/update/copy_all.cpp
}  // namespace detail

}  // namespace pleat
