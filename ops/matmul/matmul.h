#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Matrix products. Operands are of one type, else DTypeError: nothing is promoted. Half types are summed in
/// float32, integers modulo their size. bool throws DTypeError. Operands are read as they lie, transposed or
/// with gaps; only where neither of the last two dimensions is dense is there a copy. Results are row-major.
/// All throw DeviceError unless operands are on one device.

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

/// What linear_act computes of a product; ops/elementwise/activation.h has the formulas.
enum class Activation : unsigned char { relu, relu6, gelu, gelu_tanh, silu, mish, hardswish, tanh, sigmoid };

/// activation(linear(x, weight, bias)), on the CPU in float32 and float64 and without Autocast in one pass
/// over memory, elsewhere one after the other. Throws as linear, and DTypeError unless x is floating.
///
///   Tensor h = linear_act(x, fc1.weight, fc1.bias, Activation::gelu);
Tensor linear_act(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                  MatmulOptions options = {});

/// The sum of products of two vectors [N], of one type: rank 0. Throws ShapeError for other shapes.
Tensor dot(const Tensor& a, const Tensor& b);
/// a[i] b[j] of vectors [N] and [M]: [N, M]; types are promoted. Throws ShapeError for other ranks.
Tensor outer(const Tensor& a, const Tensor& b);
/// The cross product of vectors of 3 elements along `dim`; a and b broadcast, types are promoted. Throws
/// ShapeError unless both have 3 there.
Tensor cross(const Tensor& a, const Tensor& b, Integer dim = -1);

/// Sums of products in Einstein's notation: "ij,jk->ik" is the matrix product. Each operand names its
/// dimensions by letters; equal letters are multiplied along, those missing after "->" are summed. A letter
/// twice in one operand takes the diagonal; "..." stands for any further dimensions, summed like letters when
/// missing after "->". Sizes of 1 stretch to those of other operands. Without "->" the result has the
/// dimensions of "..." and then, in alphabetical order (capitals first), the letters that occur once. Several
/// operands are contracted two at a time, the pair with the smallest result first. The result may be a view
/// of a single operand. Throws ValueError on a malformed equation, ShapeError when operands do not fit it,
/// DTypeError unless they are of one type.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, MatmulOptions options = {});

}  // namespace pleat
