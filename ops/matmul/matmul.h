#pragma once

#include <string_view>
#include <vector>

#include "pleat/ops/matmul/matmul_kernels.h"

/// Differentiable matrix products; see ops/matmul/ for what each does.

namespace pleat {

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options = {});
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, MatmulOptions options = {});

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
