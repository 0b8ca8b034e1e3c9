// Private header: not installed.
#pragma once

#include <string_view>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// What einsum is put together from: the raw functions or their differentiable forms.
struct EinsumFunctions {
  Tensor (*permute)(const Tensor&, const Dims&);
  Tensor (*reshape)(const Tensor&, Sizes);
  Tensor (*diagonal)(const Tensor&, Integer offset, Integer dim0, Integer dim1);
  Tensor (*sum)(const Tensor&, const Dims&, Flag keepdim);
  Tensor (*multiply)(const Tensor&, const Tensor&);
  Tensor (*matmul)(const Tensor&, const Tensor&);
};

/// ops/matmul/einsum.h with these functions.
Tensor einsum_with(const EinsumFunctions& functions, std::string_view equation,
                   const std::vector<Tensor>& operands);

}  // namespace pleat::ops
