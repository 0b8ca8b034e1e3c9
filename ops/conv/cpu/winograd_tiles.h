// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/winograd.h"

/// The results of a convolution cut into tiles, and where the pixels of a tile lie.

namespace pleat::ops::winograd {

/// Elements from point to point of transformed tiles, at least so many: not a multiple of a page, or all
/// points would share few sets of the caches.
template <class T>
int64_t point_stride(int64_t elements) {
  return round_up(elements, 1024 / static_cast<int64_t>(sizeof(T))) + simd::lanes<T>;
}

/// The first pixel of a tile in a tensor; it may lie outside.
struct TilePixels {
  int64_t image;
  Spatial first;
};

/// The results of a problem in columns of tiles: a column has all of the dimension `line`, so that what tiles
/// read along it is transformed once.
struct TileGrid {
  Kernels kernels;
  int64_t batch;
  Spatial tile;   ///< pixels of one
  Spatial tiles;  ///< of an image; 1 along the line
  Spatial padding;
  int64_t points;  ///< values of a transformed tile
  int64_t lines;   ///< tiles of a column in the result
  int64_t line_taps;
  int64_t slices;  ///< tiles of a column in the source

  TileGrid(const ConvProblem& p, int m)
      : kernels(*find_kernels(p)),
        batch(p.batch),
        tile{1, 1, 1},
        padding(p.padding_low),
        points(kernels.count == 2 ? (m + 2) * (m + 2) : m + 2),
        lines(p.output[kernels.line]),
        line_taps(p.kernel[kernels.line]),
        slices(lines + line_taps - 1) {
    tile[kernels.b] = m;
    if (kernels.count == 2) tile[kernels.a] = m;
    for (std::size_t d = 0; d < 3; ++d) tiles[d] = d == kernels.line ? 1 : ceil_div(p.output[d], tile[d]);
  }

  int64_t columns() const { return batch * tiles[0] * tiles[1] * tiles[2]; }

  /// The first pixel of a column's tile in the result.
  TilePixels result_of(int64_t column, int64_t line) const {
    TilePixels at{0, {}};
    for (std::size_t d = 3; d-- > 0; column /= tiles[d]) at.first[d] = column % tiles[d] * tile[d];
    at.image = column;
    at.first[kernels.line] = line;
    return at;
  }
  /// The first pixel of a tile's window in the source.
  TilePixels source_of(int64_t column, int64_t slice) const {
    TilePixels at = result_of(column, slice);
    for (std::size_t d = 0; d < 3; ++d) at.first[d] -= padding[d];
    return at;
  }
};

/// points[i][j] = the pixel at distance i along dimension a and j along dimension b, `outside` for those not
/// in the tensor of these sizes and channels.
template <int rows, int columns, class T>
void list_pixels(const TilePixels& at, const Spatial& sizes, const Kernels& kernels, int64_t channels,
                 T* data, T* outside, T* (&points)[rows][columns]) {
  const auto [a, b, line, count] = kernels;
  const Spatial step{sizes[1] * sizes[2] * channels, sizes[2] * channels, channels};
  const auto inside = [&](std::size_t d, int64_t i) {
    return at.first[d] + i >= 0 && at.first[d] + i < sizes[d];
  };
  T* image = data + at.image * sizes[0] * step[0];
  int64_t base = 0;
  for (std::size_t d = 0; d < 3; ++d) base += at.first[d] * step[d];
  for (int i = 0; i < rows; ++i) {
    const bool row_inside = inside(line, 0) && inside(a, i);
    for (int j = 0; j < columns; ++j)
      points[i][j] = row_inside && inside(b, j) ? image + (base + i * step[a] + j * step[b]) : outside;
  }
}

}  // namespace pleat::ops::winograd
