#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Differentiable joining and splitting; see ops/shape/join_kernels.h for what cat, stack and
/// split_with_sizes do. A tensor [0], to which a loop may add others, goes into a cat of tensors of any rank,
/// as in PyTorch.

namespace pleat {

Tensor cat(const std::vector<Tensor>& tensors, Integer dim = 0);
Tensor stack(const std::vector<Tensor>& tensors, Integer dim = 0);
std::vector<Tensor> split_with_sizes(const Tensor& x, const IntegerList& sizes, Integer dim = 0);
/// Views of `size` elements each along `dim`, the last one of what is left. Throws ValueError unless size
/// >= 1.
std::vector<Tensor> split(const Tensor& x, Integer size, Integer dim = 0);
/// Views: at most `chunks`, equally large except the last. Throws ValueError unless chunks >= 1.
std::vector<Tensor> chunk(const Tensor& x, Integer chunks, Integer dim = 0);

/// Views of the parts along `dim`, which they lack.
std::vector<Tensor> unbind(const Tensor& x, Integer dim = 0);

enum class MeshgridIndexing : unsigned char {
  ij,  ///< vector k runs along dimension k
  xy   ///< the first two exchanged, as columns and rows
};
struct MeshgridOptions {
  MeshgridIndexing indexing = MeshgridIndexing::ij;
};
/// The coordinates of all points of a grid, by its axes, vectors or single numbers: views, one for each axis.
/// Throws ShapeError.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, MeshgridOptions options = {});

}  // namespace pleat
