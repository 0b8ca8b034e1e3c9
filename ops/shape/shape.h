#pragma once

#include "pleat/autograd/functions.h"
#include "pleat/core/tensor/tensor.h"

/// Views: other shapes and strides over the same storage, without copies (`reshape` and `flatten` copy where
/// no strides fit). Differentiable. Dimensions may be negative, counting from the end; one out of range is an
/// IndexError.

namespace pleat {

/// The same elements in row-major order under another shape; one size may be -1. Throws ShapeError when that
/// needs a copy, which `reshape` makes.
Tensor view(const Tensor& x, Sizes shape);
/// The same; a copy where no strides fit.
Tensor reshape(const Tensor& x, Sizes shape);
/// Dimensions in a new order: y.shape[i] = x.shape[order[i]].
Tensor permute(const Tensor& x, const Dims& order);
/// Two dimensions exchanged.
Tensor transpose(const Tensor& x, Integer dim0, Integer dim1);
/// The dimensions `source` at the places `destination`, the others in their order. Throws ShapeError unless
/// there are as many of both, ValueError for one named twice.
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
/// Sizes of 1 (or new leading dimensions) stretched without copying; -1 keeps a size.
Tensor expand(const Tensor& x, const Sizes& shape);
/// Elements start, start + step, ... below end of one dimension; negative bounds count from the end and both
/// are clamped. Throws ValueError unless step >= 1.
Tensor slice(const Tensor& x, Integer dim, Integer start, Integer end, Integer step = 1);
/// `length` elements from `start`, which counts from the end where negative. Throws IndexError when they
/// reach outside.
Tensor narrow(const Tensor& x, Integer dim, Integer start, Integer length);
/// Without dimensions of size 1: all, or those named (one that is larger stays).
Tensor squeeze(const Tensor& x, const Dims& dims = {});
/// With a new dimension of size 1 at `dim`.
Tensor unsqueeze(const Tensor& x, Integer dim);
/// Dimensions `first` to `last` made one; a copy where no strides fit.
Tensor flatten(const Tensor& x, Integer first = 0, Integer last = -1);
/// Dimension `dim` made several; one size may be -1.
Tensor unflatten(const Tensor& x, Integer dim, const Sizes& sizes);
/// Windows of `size` at distance `step` along `dim`: that dimension becomes the number of windows, their
/// elements are a new last dimension. Of a tensor of rank 0 the window is the result.
Tensor unfold_dimension(const Tensor& x, Integer dim, Integer size, Integer step);
/// The elements at (i, i + offset) of dimensions dim0 and dim1, as a new last dimension.
Tensor diagonal(const Tensor& x, Integer offset = 0, Integer dim0 = 0, Integer dim1 = 1);

}  // namespace pleat
