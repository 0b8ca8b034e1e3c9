#pragma once

#include <optional>

#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Raw matrix products. Operands are of one type, else DTypeError: nothing is promoted. Half types are summed
/// in float32, integers modulo their size. bool throws DTypeError. Operands are read as they lie, transposed
/// or with gaps; only where neither of the last two dimensions is dense is there a copy. Results are
/// row-major.

// Options are in namespace pleat: found through their namespace, the raw functions would rival the
// differentiable ones.
namespace pleat {

struct MatmulOptions {
  /// Of float32 on CUDA (core/base/precision.h); empty: that of the scope or the process at the call. It
  /// holds for the backward passes, too.
  std::optional<Precision> precision = {};
};

struct AddmmOptions {
  Number beta = 1;
  Number alpha = 1;
  std::optional<Precision> precision = {};  ///< as in MatmulOptions
};

}  // namespace pleat

namespace pleat::ops {

/// Matrix product of the last two dimensions, [..., m, k] x [..., k, n] -> [..., m, n]; the dimensions before
/// them broadcast. A vector [k] counts as a row on the left and a column on the right, and that dimension is
/// left out of the result: two vectors give their dot product, of rank 0. Throws ShapeError when sizes do not
/// fit or a rank is 0.
Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});

/// beta input + alpha a b for matrices a [m, k] and b [k, n]; `input` broadcasts to [m, n] and is not read
/// when beta is 0. Throws ShapeError, and DTypeError for factors that are not whole with integer tensors.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options = {});

/// x W^T + b along the last dimension: x [..., in], weight [out, in], bias [out] or undefined -> [..., out].
/// Throws ShapeError.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, MatmulOptions options = {});

}  // namespace pleat::ops
