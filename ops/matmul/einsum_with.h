// Private header: not installed.
#pragma once

#include <string_view>
#include <vector>

#include "pleat/core/tensor.h"

namespace pleat::ops {

/// What einsum is put together from: the raw functions or their differentiable forms.
struct EinsumFunctions {
  Tensor (*permute)(const Tensor&, const Dims&);
  Tensor (*reshape)(const Tensor&, Shape);
  Tensor (*diagonal)(const Tensor&, int64_t offset, int64_t dim0, int64_t dim1);
  Tensor (*sum)(const Tensor&, const Dims&, bool keepdim);
  Tensor (*multiply)(const Tensor&, const Tensor&);
  Tensor (*matmul)(const Tensor&, const Tensor&);
};

/// ops/matmul/einsum.h with these functions.
Tensor einsum_with(const EinsumFunctions& functions, std::string_view equation,
                   const std::vector<Tensor>& operands);

}  // namespace pleat::ops
