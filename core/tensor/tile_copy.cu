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
constexpr uint32_t pitch = tile + 1;  // so that a column's elements lie in different banks of shared memory

/// A tile a block. Of T, any type of the elements' size.
template <class T>
struct CopyTiles {
  Divider<uint32_t> tiles_along, tiles_across;
  uint32_t along, across;  ///< sizes of the innermost dimensions of the result and of the source
  uint32_t from_along, to_across;
  ElementOffsets<2, uint32_t> others;
  const T* from;
  T* to;

  __device__ void operator()(int64_t number, const Block& block) const {
    uint32_t a = static_cast<uint32_t>(number);
    uint32_t b = tiles_along.divide(a);
    const auto [to_start, from_start] = others.at(tiles_across.divide(b));
    a *= tile;
    b *= tile;
    const T* const source = from + from_start + a * from_along + b;
    T* const target = to + to_start + b * to_across + a;
    if (a + tile <= along && b + tile <= across)
      move<true>(source, target, tile, tile, block);
    else
      move<false>(source, target, along - a, across - b, block);
  }

 private:
  /// A tile, whole or cut off at so many elements along and across.
  template <bool whole>
  __device__ void move(const T* source, T* target, uint32_t length, uint32_t width,
                       const Block& block) const {
    const SharedArray<T, tile * pitch> shared;
    const uint32_t lane = static_cast<uint32_t>(block.thread()) % tile;
    const uint32_t first = static_cast<uint32_t>(block.thread()) / tile;
    PLEAT_UNROLL
    for (uint32_t k = 0; k < tile * tile / block_threads; ++k) {
      const uint32_t row = first + k * (block_threads / tile);
      if (whole || (row < length && lane < width))
        shared.write(static_cast<int>(row * pitch + lane), source[row * from_along + lane]);
    }
    __syncthreads();
    PLEAT_UNROLL
    for (uint32_t k = 0; k < tile * tile / block_threads; ++k) {
      const uint32_t row = first + k * (block_threads / tile);
      if (whole || (row < width && lane < length))
        target[row * to_across + lane] = shared.read(static_cast<int>(lane * pitch + row));
    }
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
  const int64_t tiles_along = ceil_div(along.size, int64_t{tile}),
                tiles_across = ceil_div(across.size, int64_t{tile});
  launch_blocks(op, to.device(), tiles_along * tiles_across * others,
                CopyTiles<T>{Divider<uint32_t>(tiles_along),
                             Divider<uint32_t>(tiles_across),
                             static_cast<uint32_t>(along.size),
                             static_cast<uint32_t>(across.size),
                             static_cast<uint32_t>(along.step[1]),
                             static_cast<uint32_t>(across.step[0]),
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
