#pragma once

#include <string_view>
#include <vector>

#include "pleat/ops/matmul/matmul.h"

/// Differentiable matrix products; see ops/matmul/ for what each does.

namespace pleat {

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, AddmmOptions options = {});
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, MatmulOptions options = {});
/// See ops/matmul/einsum.h.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, MatmulOptions options = {});

}  // namespace pleat
