#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/core/tensor/tile_copy.h"

namespace pleat {
namespace {

constexpr uint32_t tile = 32;

/// A block makes two tiles, neighbours along one of the innermost dimensions. Of T, any type of the elements'
/// size.
template <class T>
struct CopyTiles {
  Divider<uint32_t> blocks_along, blocks_across;
  uint32_t along, across;            ///< sizes of the innermost dimensions of the result and of the source
  uint32_t next_along, next_across;  ///< from a block's tile to the next
  uint32_t from_along, to_across, next_from, next_to;
  ElementOffsets<2, uint32_t> others;
  const T* from;
  T* to;

  __device__ void operator()(int64_t number, const Block& block) const {
    uint32_t a = static_cast<uint32_t>(number);
    uint32_t b = blocks_along.divide(a);
    const auto [to_start, from_start] = others.at(blocks_across.divide(b));
    a *= tile + next_along;
    b *= tile + next_across;
    const T* const source = from + from_start + a * from_along + b;
    T* const target = to + to_start + b * to_across + a;
    const uint32_t length = along - a, width = across - b;
    if (length >= tile + next_along && width >= tile + next_across)
      move<true>(source, target, length, width, block);
    else
      move<false>(source, target, length, width, block);
  }

 private:
  /// A column's elements lie in different banks of shared memory.
  static constexpr uint32_t pitch = tile + std::max<uint32_t>(1, 4 / sizeof(T));

  /// Tiles, whole or cut off at so many elements along and across.
  template <bool whole>
  __device__ void move(const T* source, T* target, uint32_t length, uint32_t width,
                       const Block& block) const {
    const SharedArray<T, 2 * tile * pitch> shared;
    const uint32_t lane = static_cast<uint32_t>(block.thread()) % tile;
    const uint32_t first = static_cast<uint32_t>(block.thread()) / tile;
    source += first * from_along + lane;
    target += first * to_across + lane;
    // f(tile, rows from the thread's first row on) where row and lane are below these sizes
    const auto for_each_row = [&](uint32_t rows, uint32_t next_row, uint32_t lanes, uint32_t next_lane,
                                  const auto& f) {
      PLEAT_UNROLL
      for (uint32_t t = 0; t < 2; ++t) {
        PLEAT_UNROLL
        for (uint32_t k = 0; k < tile; k += block_threads / tile)
          if (whole || (first + k + t * next_row < rows && lane + t * next_lane < lanes)) f(t, k);
      }
    };
    for_each_row(length, next_along, width, next_across, [&](uint32_t t, uint32_t k) {
      shared.write(static_cast<int>((t * tile + first + k) * pitch + lane),
                   source[std::size_t{t} * next_from + std::size_t{k} * from_along]);
    });
    __syncthreads();
    for_each_row(width, next_across, length, next_along, [&](uint32_t t, uint32_t k) {
      target[std::size_t{t} * next_to + std::size_t{k} * to_across] =
          shared.read(static_cast<int>((t * tile + lane) * pitch + first + k));
    });
  }
};

/// Sizes below which most of a tile would be empty.
constexpr int64_t least_size = 16;

template <class T>
void copy_tiles(const char* op, const Tensor& to, const Tensor& from, std::vector<LoopDim> dims,
                std::size_t inner, const std::array<int64_t, 2>& starts) {
  const LoopDim along = dims[0], across = dims[inner];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(inner));
  dims.erase(dims.begin());
  int64_t others = 1;
  for (const LoopDim& dim : dims) others *= dim.size;
  const bool follow_along = along.size >= across.size;
  const uint32_t next_along = follow_along ? tile : 0, next_across = tile - next_along;
  const int64_t blocks_along = ceil_div(along.size, int64_t{tile + next_along}),
                blocks_across = ceil_div(across.size, int64_t{tile + next_across});
  launch_blocks(op, to.device(), blocks_along * blocks_across * others,
                CopyTiles<T>{Divider<uint32_t>(blocks_along),
                             Divider<uint32_t>(blocks_across),
                             static_cast<uint32_t>(along.size),
                             static_cast<uint32_t>(across.size),
                             next_along,
                             next_across,
                             static_cast<uint32_t>(along.step[1]),
                             static_cast<uint32_t>(across.step[0]),
                             static_cast<uint32_t>(tile * (follow_along ? along.step[1] : 1)),
                             static_cast<uint32_t>(tile * (follow_along ? 1 : across.step[0])),
                             {op, dims},
                             reinterpret_cast<const T*>(from.raw()) + starts[1],
                             reinterpret_cast<T*>(to.raw()) + starts[0]});
}

}  // namespace

bool copied_by_tiles(const char* op, const Tensor& to, const Tensor& from) {
  const std::array operands = {Operand{to, to.dtype(), Access::write},
                               Operand{from, from.dtype(), Access::read}};
  const ElementwiseLoop loop = make_elementwise_loop(op, operands);
  if (to.dtype() != from.dtype() || loop.dims.size() < 2) return false;
  if (loop.dims[0].step[0] != 1 || loop.dims[0].step[1] <= 1 || loop.dims[0].size < least_size) return false;
  const auto inner =
      std::find_if(loop.dims.begin(), loop.dims.end(), [](const LoopDim& dim) { return dim.step[1] == 1; });
  if (inner == loop.dims.end() || inner->size < least_size) return false;
  const auto place = static_cast<std::size_t>(inner - loop.dims.begin());
  to.begin_write();
  for_small_parts<2>(loop.dims, small_loop, [&](const std::vector<LoopDim>& dims, const auto& starts) {
    dispatch_size(to.dtype(), [&]<class T>(Type<T>) {
      copy_tiles<T>(op, to, loop.operands[1].tensor, dims, place, starts);
    });
  });
  return true;
}

}  // namespace pleat
