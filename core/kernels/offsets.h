// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

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

/// Where the operands' elements of loop index i lie. An Index of uint32_t is for the parts of
/// for_small_parts.
template <std::size_t N, class Index = int64_t>
struct ElementOffsets {
  int outermost = 0;  ///< dimension; a loop without any has one of one element
  std::array<Divider<Index>, max_kernel_dims> size{};
  std::array<std::array<Index, N>, max_kernel_dims> step{};

  ElementOffsets() = default;
  /// Throws ShapeError for more dimensions than a functor can carry.
  ElementOffsets(const char* op, const std::vector<LoopDim>& loop) {
    check_kernel_dims(op, loop.size());
    outermost = std::max(0, static_cast<int>(loop.size()) - 1);
    for (std::size_t d = 0; d < loop.size(); ++d) {
      size[d] = Divider<Index>(loop[d].size);
      for (std::size_t k = 0; k < N; ++k) step[d][k] = static_cast<Index>(loop[d].step[k]);
    }
  }

  /// Steps may be negative: those of uint32_t are numbers modulo 2^32 until here.
  using Offset = std::make_signed_t<Index>;
  PLEAT_HOST_DEVICE std::array<Offset, N> at(Index i) const {
    std::array<Index, N> offsets{};
    PLEAT_ROLLED
    for (int d = 0; d < outermost; ++d) {
      Index rest = i;
      i = size[static_cast<std::size_t>(d)].divide(rest);
      for (std::size_t k = 0; k < N; ++k) offsets[k] += rest * step[static_cast<std::size_t>(d)][k];
    }
    std::array<Offset, N> result;
    for (std::size_t k = 0; k < N; ++k)
      result[k] = static_cast<Offset>(offsets[k] + i * step[static_cast<std::size_t>(outermost)][k]);
    return result;
  }
};

/// How many elements a loop and each of its operands may reach over for indices of 32 bits.
inline constexpr int64_t small_loop = int64_t{1} << 31;

/// Calls run(loop, starts) for parts of a loop that reach over less than `most` elements each, one behind the
/// other: the whole loop where it is small. starts[k]: of operand k's first element, counted from its
/// tensor's.
template <std::size_t N, class Run>
void for_small_parts(const std::vector<LoopDim>& dims, int64_t most, const Run& run,
                     const std::array<int64_t, N>& starts = {}) {
  int64_t elements = 1;
  std::array<int64_t, N> reach{};
  for (const LoopDim& dim : dims) {
    elements *= dim.size;
    for (std::size_t k = 0; k < N; ++k) reach[k] += (dim.size - 1) * std::abs(dim.step[k]);
  }
  if (elements < most && *std::max_element(reach.begin(), reach.end()) < most) return run(dims, starts);
  // The dimension that reaches furthest is cut into two.
  const auto length = [](const LoopDim& dim) {
    int64_t most_steps = 1;
    for (std::size_t k = 0; k < N; ++k) most_steps = std::max(most_steps, std::abs(dim.step[k]));
    return dim.size == 1 ? 0 : dim.size * most_steps;
  };
  const auto longest = std::max_element(
      dims.begin(), dims.end(), [&](const LoopDim& a, const LoopDim& b) { return length(a) < length(b); });
  const auto cut = static_cast<std::size_t>(longest - dims.begin());
  std::vector<LoopDim> half = dims;
  half[cut].size = dims[cut].size / 2;
  for_small_parts<N>(half, most, run, starts);
  std::array<int64_t, N> second = starts;
  for (std::size_t k = 0; k < N; ++k) second[k] += half[cut].size * dims[cut].step[k];
  half[cut].size = dims[cut].size - half[cut].size;
  for_small_parts<N>(half, most, run, second);
}

/// Where element i of a shape lies, counted in row-major order, in tensors of these strides. Throws
/// ShapeError for more dimensions than a functor can carry.
template <std::size_t N>
ElementOffsets<N> row_major_offsets(const char* op, const Shape& shape,
                                    const std::array<Strides, N>& strides) {
  std::vector<LoopDim> loop;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    LoopDim dim{shape[d], {}};
    for (std::size_t k = 0; k < N; ++k) dim.step[k] = strides[k][d];
    bool joins = !loop.empty();
    for (std::size_t k = 0; k < N && joins; ++k)
      joins = dim.step[k] == loop.back().step[k] * loop.back().size;
    if (joins)
      loop.back().size *= dim.size;
    else
      loop.push_back(dim);
  }
  return {op, loop};
}

}  // namespace pleat
