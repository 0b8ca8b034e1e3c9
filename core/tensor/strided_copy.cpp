#include "pleat/core/tensor/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/streaming.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy_bytes.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/core/tensor/transpose_few.h"

/// Copies between strides, a rectangle of two dimensions at a time: the densest of the result and the densest
/// of the source. So both sides use whole cache lines, and where these dimensions differ the rectangle is a
/// matrix to be transposed. Elements are moved as unsigned integers of their size.

namespace pleat {
namespace {

/// Elements of a piece of work, and of a side of it where it is transposed.
constexpr int64_t piece_elements = 32768;
constexpr int64_t transposed_side = 256;
/// Elements of a tensor that stays in the second-level cache.
constexpr int64_t cached_elements = 100'000;
/// Lines of a large result that are written past the caches: others would be many parts of cache lines.
constexpr int64_t long_line_bytes = 2048;

/// Element (i, j), i < size[0], j < size[1], lies at i * step[0] + j * step[1] on either side.
struct Rectangle {
  int64_t size[2];
  int64_t to_step[2];
  int64_t from_step[2];
  Stores stores;
};

/// to[i * to_step] = from[i * from_step]; steps that are 0 in the template are the variables.
template <int64_t known_to, int64_t known_from, class T>
void copy_steps(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t n) {
  if constexpr (known_to != 0) to_step = known_to;
  if constexpr (known_from != 0) from_step = known_from;
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
}

/// Lines of `width` neighbours.
template <int64_t width, class T>
void copy_narrow(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t lines) {
  for (int64_t i = 0; i < lines; ++i)
    std::memcpy(to + i * to_step, from + i * from_step, static_cast<std::size_t>(width) * sizeof(T));
}

template <class T>
void copy_line(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t n) {
  if (to_step == 1 && from_step == 1)
    detail::copy_bytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                       static_cast<std::size_t>(n) * sizeof(T));
  else if (to_step == 1 && from_step == 0)
    std::fill_n(to, n, *from);
  else if (to_step == 1 && from_step == -1)
    copy_steps<1, -1>(to, 1, from, -1, n);
  else if (to_step == 1 && from_step == 2)
    copy_steps<1, 2>(to, 1, from, 2, n);
  else if (to_step == 1 && from_step == 3)  // the channels of colours
    copy_steps<1, 3>(to, 1, from, 3, n);
  else if (to_step == 1)
    copy_steps<1, 0>(to, 1, from, from_step, n);
  else if (from_step == 1)
    copy_steps<0, 1>(to, to_step, from, 1, n);
  else
    copy_steps<0, 0>(to, to_step, from, from_step, n);
}

template <class T>
void copy_rectangle(const Rectangle& r, T* to, const T* from) {
  constexpr int64_t block = sizeof(typename detail::BlockRow<sizeof(T)>::type) / sizeof(T);
  if (r.to_step[0] == 1 && r.from_step[1] == 1) {
    if constexpr (sizeof(T) >= 4)
      if (transpose_few(to, r.to_step[1], from, r.from_step[0], r.size[0], r.size[1])) return;
    if (std::min(r.size[0], r.size[1]) >= block)
      return transpose_matrix(to, r.to_step[1], from, r.from_step[0], r.size[0], r.size[1], r.stores);
  }
  // Lines of a few elements cost more to begin than to copy.
  const bool plain = r.to_step[0] == 1 && r.from_step[0] == 1;
  if (r.stores == Stores::streamed && plain) {
    for (int64_t j = 0; j < r.size[1]; ++j)
      stream_bytes(to + j * r.to_step[1], from + j * r.from_step[1],
                   r.size[0] * static_cast<int64_t>(sizeof(T)));
    return;
  }
  if (plain && r.size[0] == 2) return copy_narrow<2>(to, r.to_step[1], from, r.from_step[1], r.size[1]);
  if (plain && r.size[0] == 3) return copy_narrow<3>(to, r.to_step[1], from, r.from_step[1], r.size[1]);
  const int along = r.size[0] < (plain ? 4 : 16) && r.size[0] < r.size[1] ? 1 : 0;
  const int across = 1 - along;
  for (int64_t j = 0; j < r.size[across]; ++j)
    copy_line(to + j * r.to_step[across], r.to_step[along], from + j * r.from_step[across],
              r.from_step[along], r.size[along]);
}

/// A loop cut into rectangles, and these into pieces.
struct Pieces {
  Rectangle whole;
  int64_t side[2];            ///< of a piece
  std::vector<LoopDim> dims;  ///< the pieces: along both sides, then the other dimensions outwards
  int64_t count = 1;

  explicit Pieces(const ElementwiseLoop& loop) {
    const std::vector<LoopDim>& all = loop.dims;
    // A step of 0 (broadcast) says nothing of where the source is dense.
    const auto source_step = [&](std::size_t d) {
      const int64_t step = std::abs(all[d].step[1]);
      return step == 0 ? std::numeric_limits<int64_t>::max() : step;
    };
    std::size_t densest = 0;
    for (std::size_t d = 1; d < all.size(); ++d)
      if (source_step(d) < source_step(densest)) densest = d;
    const bool crossed = densest != 0;
    std::size_t second = crossed ? densest : 1;
    // Rectangles of a few elements cost more to begin than to copy. In the cache any other order will do.
    if (all.size() > 2 && all[0].size * all[second].size < 64 && loop.numel() < cached_elements)
      second = static_cast<std::size_t>(
          std::max_element(all.begin() + 1, all.end(),
                           [](const LoopDim& x, const LoopDim& y) { return x.size < y.size; }) -
          all.begin());
    const LoopDim& a = all[0];
    const LoopDim b = all.size() > 1 ? all[second] : LoopDim{1, {}};
    const Tensor& to = loop.operands[0].tensor;
    const int64_t bytes = size_of(to.dtype()), line = a.size * bytes;
    const bool in_lines = reinterpret_cast<std::uintptr_t>(to.raw()) % cache_line == 0 &&
                          std::all_of(all.begin() + 1, all.end(), [&](const LoopDim& dim) {
                            return dim.step[0] * bytes % cache_line == 0;
                          });
    const int64_t in_all = to.impl().storage->size;
    // Lines, or squares of them where both sides are dense in one of the two dimensions.
    const bool in_squares = in_lines && b.step[1] == 1;
    const bool streams = is_streamed(in_all) && loop.numel() * bytes >= in_all / 8 && a.step[0] == 1 &&
                         (a.step[1] == 1 ? line >= (in_lines ? cache_line : long_line_bytes) : in_squares);
    constexpr int64_t beyond_caches = int64_t{8} << 20;
    const Stores stores = streams                  ? Stores::streamed
                          : in_all > beyond_caches ? Stores::fetched
                                                   : Stores::cached;
    whole = {{a.size, b.size}, {a.step[0], b.step[0]}, {a.step[1], b.step[1]}, stores};
    side[0] = std::min(a.size, crossed ? transposed_side : piece_elements);
    side[1] = std::min(b.size, crossed ? transposed_side : std::max<int64_t>(1, piece_elements / side[0]));
    for (int s = 0; s < 2; ++s)
      dims.push_back(
          {ceil_div(whole.size[s], side[s]), {side[s] * whole.to_step[s], side[s] * whole.from_step[s]}});
    for (std::size_t d = 1; d < all.size(); ++d)
      if (d != second) dims.push_back(all[d]);
    for (const LoopDim& dim : dims) count *= dim.size;
  }

  template <class T>
  void copy(T* to, const T* from, int64_t first, int64_t last) const {
    std::vector<int64_t> index(dims.size());
    int64_t rest = first;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      index[d] = rest % dims[d].size;
      rest /= dims[d].size;
      to += index[d] * dims[d].step[0];
      from += index[d] * dims[d].step[1];
    }
    Rectangle piece = whole;
    for (int64_t i = first; i < last; ++i) {
      for (std::size_t s = 0; s < 2; ++s)
        piece.size[s] = std::min(side[s], whole.size[s] - index[s] * side[s]);
      copy_rectangle(piece, to, from);
      for (std::size_t d = 0; d < dims.size(); ++d) {
        to += dims[d].step[0];
        from += dims[d].step[1];
        if (++index[d] < dims[d].size) break;
        to -= dims[d].size * dims[d].step[0];
        from -= dims[d].size * dims[d].step[1];
        index[d] = 0;
      }
    }
  }
};

template <class T>
void copy_pieces(const Pieces& pieces, std::byte* to, const std::byte* from) {
  parallel_for(0, pieces.count, std::max<int64_t>(1, piece_elements / (pieces.side[0] * pieces.side[1])),
               [&](int64_t first, int64_t last) {
                 pieces.copy(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), first, last);
                 if (pieces.whole.stores == Stores::streamed) end_streaming();
               });
}

template <class T>
void transpose_images(int64_t images, int64_t rows, int64_t columns, const std::byte* from, std::byte* to) {
  for (int64_t i = 0; i < images; ++i) {
    T* const own = reinterpret_cast<T*>(to) + i * rows * columns;
    const T* const image = reinterpret_cast<const T*>(from) + i * rows * columns;
    if (!transpose_few(own, rows, image, columns, rows, columns))
      transpose_matrix(own, rows, image, columns, rows, columns);
  }
}

/// Few images from one format to the other, for which a plan of the copy takes longer than the copy.
bool copied_image_by_image(const Tensor& to, const Tensor& from) {
  constexpr int64_t most_elements = 1 << 13;
  const Shape& shape = from.shape();
  const int64_t bytes = size_of(from.dtype());
  if (shape.size() < 3 || shape.size() > 5 || from.numel() > most_elements || from.numel() == 0 || bytes < 4)
    return false;
  if (to.shape() != shape || to.impl().storage == from.impl().storage) return false;
  const bool to_last = from.is_contiguous() && to.is_contiguous(MemoryFormat::channels_last);
  if (!to_last && !(to.is_contiguous() && from.is_contiguous(MemoryFormat::channels_last))) return false;
  const int64_t images = shape[0], channels = shape[1], pixels = from.numel() / (images * channels);
  const int64_t rows = to_last ? channels : pixels, columns = to_last ? pixels : channels;
  to.begin_write();
  bytes == 4 ? transpose_images<uint32_t>(images, rows, columns, from.raw(), to.raw())
             : transpose_images<uint64_t>(images, rows, columns, from.raw(), to.raw());
  return true;
}

}  // namespace

void copy_strided(const Tensor& to, const Tensor& from) {
  if (copied_image_by_image(to, from)) return;
  const std::array<Operand, 2> operands = {
      {{to, to.dtype(), Access::write}, {from, from.dtype(), Access::read}}};
  const ElementwiseLoop loop = make_elementwise_loop("copy", operands);
  if (loop.numel() == 0) return;
  const Pieces pieces(loop);
  to.begin_write();
  const std::byte* const source = loop.operands[1].tensor.raw();
  switch (size_of(to.dtype())) {
    case 1:
      copy_pieces<uint8_t>(pieces, to.raw(), source);
      break;
    case 2:
      copy_pieces<uint16_t>(pieces, to.raw(), source);
      break;
    case 4:
      copy_pieces<uint32_t>(pieces, to.raw(), source);
      break;
    default:
      copy_pieces<uint64_t>(pieces, to.raw(), source);
  }
}

}  // namespace pleat
