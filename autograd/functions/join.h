#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Differentiable joining and splitting; see ops/shape/join.h for what each does.

namespace pleat {

Tensor cat(const std::vector<Tensor>& tensors, Integer dim = 0);
Tensor stack(const std::vector<Tensor>& tensors, Integer dim = 0);
std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim = 0);
std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim = 0);
std::vector<Tensor> chunk(const Tensor& x, Integer chunks, Integer dim = 0);

}  // namespace pleat
