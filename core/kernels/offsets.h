// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pleat/core/base/error.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/elementwise.h"

/// Where elements lie that a kernel finds by their number.

namespace pleat {

/// More dimensions are left in hardly any loop once those that lie one behind the other are joined.
inline constexpr std::size_t max_kernel_dims = 16;

inline void check_kernel_dims(const char* op, std::size_t dims) {
  if (dims > max_kernel_dims)
    throw ShapeError(std::string(op) + ": on a GPU at most " + std::to_string(max_kernel_dims) +
                     " dimensions that cannot be joined, got " + std::to_string(dims));
}

/// Where the operands' elements of loop index i lie.
template <std::size_t N>
struct ElementOffsets {
  int dims = 0;
  std::array<FastDivider, max_kernel_dims> size{};
  std::array<std::array<int64_t, N>, max_kernel_dims> step{};

  ElementOffsets() = default;
  /// Throws ShapeError for more dimensions than a functor can carry.
  ElementOffsets(const char* op, const ElementwiseLoop& loop) : dims(static_cast<int>(loop.dims.size())) {
    check_kernel_dims(op, loop.dims.size());
    for (std::size_t d = 0; d < loop.dims.size(); ++d) {
      size[d] = FastDivider(loop.dims[d].size);
      for (std::size_t k = 0; k < N; ++k) step[d][k] = loop.dims[d].step[k];
    }
  }

  PLEAT_HOST_DEVICE std::array<int64_t, N> at(int64_t i) const {
    std::array<int64_t, N> offsets{};
    for (int d = 0; d < dims; ++d) {
      int64_t rest = i;
      i = d + 1 < dims ? size[static_cast<std::size_t>(d)].divide(rest) : 0;
      for (std::size_t k = 0; k < N; ++k) offsets[k] += rest * step[static_cast<std::size_t>(d)][k];
    }
    return offsets;
  }
};

/// Where element i of a shape lies, counted in row-major order, in tensors of these strides. Throws
/// ShapeError for more dimensions than a functor can carry.
template <std::size_t N>
ElementOffsets<N> row_major_offsets(const char* op, const Shape& shape,
                                    const std::array<Strides, N>& strides) {
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
  return {op, loop};
}

}  // namespace pleat
