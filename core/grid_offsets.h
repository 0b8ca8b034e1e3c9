// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "pleat/core/grid_elementwise.h"

namespace pleat {

/// Where element i of a shape lies, counted in row-major order, in tensors of these strides. Throws
/// ShapeError for more dimensions than a functor can carry.
template <std::size_t N>
GridOffsets<N> row_major_offsets(const char* op, const Shape& shape, const std::array<Strides, N>& strides) {
  ElementwiseLoop loop;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    LoopDim dim{shape[d], {}};
    for (std::size_t k = 0; k < N; ++k) dim.step[k] = strides[k][d];
    bool joins = !loop.dims.empty();
    for (std::size_t k = 0; k < N && joins; ++k)
      joins = dim.step[k] == loop.dims.back().step[k] * loop.dims.back().size;
    if (joins)
      loop.dims.back().size *= dim.size;
    else
      loop.dims.push_back(dim);
  }
  if (loop.dims.size() > max_grid_dims)
    throw ShapeError(std::string(op) + ": over a grid at most " + std::to_string(max_grid_dims) +
                     " dimensions that cannot be joined, got " + std::to_string(loop.dims.size()));
  return GridOffsets<N>(loop);
}

}  // namespace pleat
