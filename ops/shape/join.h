#pragma once

#include <vector>

#include "pleat/core/tensor/tensor.h"

/// Tensors put together and taken apart. Differentiable. Dimensions may be negative, counting from the end;
/// one out of range is an IndexError.

namespace pleat {

/// The tensors one after another along `dim`; all other sizes must be equal. A tensor [0], to which a loop
/// may add others, goes with tensors of any rank, as in PyTorch. Types are promoted. The result is
/// channels_last when every tensor is, else row-major. Throws ValueError for no tensors, ShapeError,
/// DeviceError.
Tensor cat(const std::vector<Tensor>& tensors, Integer dim = 0);
/// The tensors, of one shape, along a new dimension `dim`. Errors as for cat.
Tensor stack(const std::vector<Tensor>& tensors, Integer dim = 0);

/// Views of these sizes, whose sum must be the dimension's. Throws ShapeError.
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
