// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/channel_sums.h"
#include "pleat/ops/conv/cpu/conv_source.h"
#include "pleat/ops/conv/cpu/gather.h"
#include "pleat/ops/conv/cpu/winograd_transform.h"
#include "pleat/ops/matmul/result_finish.h"

/// The passes of `winograd` convolutions, how their results are cut into tiles, and where the pixels of a
/// tile lie. Kernels have 2 or more taps for each step of the stride along one or two dimensions, with stride
/// or dilation 1, and perhaps a kernel of any size along a further one, with stride and dilation 1. Tiles
/// have m = 2 or 4 results along the former; along the latter, products of taps are added up as they are.
///
/// With stride s, taps i, i + s, i + 2 s ... read every s-th pixel: they are a kernel of stride 1 for one of
/// s phases of the source, and products of all phases are added up like those of so many more channels. More
/// taps than 2 or 3 are several such kernels, the parts, each of which reads a source shifted by as many
/// pixels: further phases. The last two parts may share taps, of which each has half of the weight, so that
/// no part reads a pixel that the kernel does not. With dilation d, every d-th result reads every d-th pixel:
/// d classes of results, each like a convolution without dilation.
/// Of the gradient of the input each stride class (gather.h) has stride 1.

namespace pleat::ops::winograd {

/// The dimensions: tiles are along b, of two kernels also along a; results along `line` are computed
/// together.
struct Kernels {
  std::size_t a, b, line;
  int count;  ///< of the dimensions with tiles: 1 or 2
  int taps;   ///< of a part along these: 2 or 3
};
/// Those of a problem; nothing where it is not of the kind.
std::optional<Kernels> find_kernels(const ConvProblem& p);

/// Weights as `multiply` reads them.
template <class T>
struct TransformedWeights {
  GatherWeights<T> given;
  std::shared_ptr<std::byte> transformed;
  std::shared_ptr<std::byte> scales;  ///< of the source's channels; behind them as many zeros
};
template <class T>
TransformedWeights<T> transform_weights(const Gather& gather, const Kernels& kernels, int m,
                                        const GatherWeights<T>& weights);

/// The results of a gather; `bias` and `sums` may be null, and `sums` are made of y.
template <class T>
void multiply(const Gather& gather, const Kernels& kernels, int m, const ConvSource<T>& source,
              const TransformedWeights<T>& weights, const T* bias, T* y, ChannelSums<T>* sums,
              const RowFinish<T>& finish = {});
/// dw [K, taps, C] from dy and x.
template <class T>
void weight_gradient(const ConvProblem& p, int m, const T* dy, const ConvSource<T>& x, T* dw);

/// Bytes beside operands and result.
template <class T>
int64_t multiply_workspace(const Gather& gather, const Kernels& kernels, int m);
template <class T>
int64_t weight_gradient_workspace(const ConvProblem& p, int m);

/// Calls f with constants: the results of a tile along a (1 where it has no tiles) and b, and the taps.
template <class F>
void by_kernels(const Kernels& kernels, int m, const F& f) {
  const auto with = [&](auto mb, auto taps) {
    if (kernels.count == 2)
      f(mb, mb, taps);
    else
      f(std::integral_constant<int, 1>(), mb, taps);
  };
  const auto with_taps = [&](auto mb) {
    if (kernels.taps == 3)
      with(mb, std::integral_constant<int, 3>());
    else
      with(mb, std::integral_constant<int, 2>());
  };
  if (m == 4)
    with_taps(std::integral_constant<int, 4>());
  else
    with_taps(std::integral_constant<int, 2>());
}

/// Elements from point to point of transformed tiles, at least so many: not a multiple of a page, or all
/// points would share few sets of the caches.
template <class T>
int64_t point_stride(int64_t elements) {
  return round_up(elements, 1024 / static_cast<int64_t>(sizeof(T))) + line_elements<T>;
}

/// Transforms and sums make numbers larger by less than 1 / this.
inline constexpr double overflow_reserve = 0x1p-30;

/// The first pixel of a tile in a tensor; it may lie outside.
struct TilePixels {
  int64_t image;
  Spatial first;
  Spatial results;  ///< of the tile, those that exist
};

/// The results of a gather in columns of tiles: a column has all of the dimension `line`, so that what tiles
/// read along it is transformed once.
struct TileGrid {
  Kernels kernels;
  int64_t batch;
  Spatial source, result;  ///< sizes
  Spatial tile{1, 1, 1};   ///< pixels of one
  Spatial tiles;           ///< of an image; 1 along the line
  Spatial parts{1, 1, 1};  ///< of the kernel
  Spatial last_part{};     ///< where it begins, in steps of the stride
  Spatial counts;          ///< results of an image
  Spatial dilation{1, 1, 1};
  Spatial classes{1, 1, 1};  ///< of results by dilation
  /// Of the pixels of the result that a tile has, and of those that it reads in the source: the distance from
  /// pixel to pixel.
  Spatial result_step, source_step;
  Spatial tap_step;  ///< from tap to tap of a phase
  int64_t points;    ///< values of a transformed tile
  int64_t phases;    ///< of the source: those of the stride, for each part of the kernel
  int64_t lines;     ///< tiles of a column in the result
  int64_t line_taps;
  int64_t slices;  ///< tiles of a column in the source

  TileGrid(const Gather& g, const Kernels& k, int m)
      : kernels(k),
        batch(g.batch),
        source(g.source),
        result(g.result),
        points(k.count == 2 ? (m + k.taps - 1) * (m + k.taps - 1) : m + k.taps - 1),
        lines(g.dims[k.line].count),
        line_taps(static_cast<int64_t>(g.dims[k.line].taps.size())),
        slices(lines + line_taps - 1) {
    tile[k.b] = m;
    if (k.count == 2) tile[k.a] = m;
    for (std::size_t d = 0; d < 3; ++d) {
      const GatherDim& dim = g.dims[d];
      tap_step[d] = dim.source_step;
      if (tile[d] > 1) {
        const int64_t taps = static_cast<int64_t>(dim.taps.size()) / tap_step[d];
        dilation[d] = dim.taps[1].offset - dim.taps[0].offset;
        parts[d] = ceil_div(taps, k.taps);
        last_part[d] = taps - k.taps;
      }
      counts[d] = dim.count;
      classes[d] = std::clamp<int64_t>(dim.count, 1, dilation[d]);
      tiles[d] = d == k.line ? 1 : ceil_div(ceil_div(dim.count, dilation[d]), tile[d]);
      result_first_[d] = dim.first;
      source_first_[d] = dim.low();
      result_stride_[d] = dim.step;
      result_step[d] = dim.step * dilation[d];
      source_step[d] = dim.source_step * dilation[d];
    }
    phases = phases_along(k.a) * phases_along(k.b);
  }

  int64_t columns() const {
    return batch * tiles[0] * tiles[1] * tiles[2] * classes[kernels.a] * classes[kernels.b];
  }

  /// The first tap of a phase along dimension d.
  int64_t first_tap(int64_t phase, std::size_t d) const {
    if (d == kernels.line) return 0;
    return along(phase, d) % tap_step[d] +
           std::min(part_of(phase, d) * kernels.taps, last_part[d]) * tap_step[d];
  }
  /// Of a phase's taps along dimension d those that the part before has, too: the first so many.
  int64_t repeated(int64_t phase, std::size_t d) const {
    return part_of(phase, d) * kernels.taps - std::min(part_of(phase, d) * kernels.taps, last_part[d]);
  }
  /// How much of the weight a phase's tap i along dimension d has.
  double share(int64_t phase, std::size_t d, int64_t i) const {
    const int64_t part = part_of(phase, d);
    const bool is_in_next = part + 2 == parts[d] && i >= last_part[d] - part * kernels.taps;
    return i < repeated(phase, d) || is_in_next ? 0.5 : 1;
  }

  /// The first pixel of a column's tile in the result.
  TilePixels result_of(int64_t column, int64_t line) const {
    TilePixels at = place_of(column, line);
    for (std::size_t d = 0; d < 3; ++d) at.first[d] = result_first_[d] + at.first[d] * result_stride_[d];
    return at;
  }
  /// The first pixel of a tile's window in a phase of the source.
  TilePixels source_of(int64_t column, int64_t slice, int64_t phase) const {
    TilePixels at = place_of(column, slice);
    for (std::size_t d = 0; d < 3; ++d)
      at.first[d] = source_first_[d] + first_tap(phase, d) * dilation[d] + at.first[d] * tap_step[d];
    return at;
  }

  /// Of a tile's window along dimension d, where two stretches of `count` pixels begin, count < taps: each
  /// result reads one of them.
  std::array<int64_t, 2> read_by_all(const TilePixels& window, std::size_t d, int64_t count = 1) const {
    if (tile[d] == 1) return {0, 0};
    const int64_t inside = window.first[d] < 0 ? ceil_div(-window.first[d], source_step[d]) : 0;
    const int64_t first = std::clamp<int64_t>(inside, 1, kernels.taps - count);
    return {first, window.results[d] > 2 ? 3 : first};
  }

  /// Calls f(t, column, i) for `count` columns of so many tiles each, from column `begin` on.
  template <class F>
  static void for_tiles(int64_t begin, int64_t count, int64_t each, const F& f) {
    int64_t t = 0;
    for (int64_t column = begin; column < begin + count; ++column)
      for (int64_t i = 0; i < each; ++i) f(t++, column, i);
  }

 private:
  int64_t phases_along(std::size_t d) const { return parts[d] * tap_step[d]; }
  /// A phase's number along dimension d, and the part of the kernel.
  int64_t along(int64_t phase, std::size_t d) const {
    return d == kernels.a ? phase / phases_along(kernels.b) : phase % phases_along(kernels.b);
  }
  int64_t part_of(int64_t phase, std::size_t d) const { return along(phase, d) / tap_step[d]; }
  /// The first result of a tile, among those of the gather.
  TilePixels place_of(int64_t column, int64_t line) const {
    TilePixels at{0, {}, {}};
    for (std::size_t d = 3; d-- > 0;) {  // divisions take long
      if (classes[d] > 1) {
        at.first[d] = column % classes[d];
        column /= classes[d];
      }
      if (tiles[d] > 1) {
        at.first[d] += column % tiles[d] * tile[d] * dilation[d];
        column /= tiles[d];
      }
      const int64_t left = counts[d] - at.first[d];
      at.results[d] = dilation[d] == 1 ? std::min(tile[d], left)
                                       : std::min(tile[d], ceil_div(std::max<int64_t>(left, 0), dilation[d]));
    }
    at.image = column;
    at.first[kernels.line] = line;
    return at;
  }

  Spatial result_first_, source_first_;  ///< the first pixels
  Spatial result_stride_;
};

/// points[i][j] = the pixel i steps along dimension a and j along dimension b, `outside` for those not in the
/// tensor of these sizes and channels.
template <int rows, int columns, class T>
void list_pixels(const TilePixels& at, const Spatial& sizes, const Spatial& steps, const Kernels& kernels,
                 int64_t channels, T* data, T* outside, T* (&points)[rows][columns]) {
  const std::size_t a = kernels.a, b = kernels.b, line = kernels.line;
  const Spatial pitch{sizes[1] * sizes[2] * channels, sizes[2] * channels, channels};
  int64_t base = at.image * sizes[0] * pitch[0];
  for (std::size_t d = 0; d < 3; ++d) base += at.first[d] * pitch[d];
  // Of the steps 0 ... count-1 along a dimension those inside: from the first to the end.
  const auto inside = [&](std::size_t d, int64_t steps_wanted) {
    if (at.first[d] >= 0 && at.first[d] + (steps_wanted - 1) * steps[d] < sizes[d])
      return std::pair<int64_t, int64_t>(0, steps_wanted);
    const int64_t end = ceil_div(std::max<int64_t>(sizes[d] - at.first[d], 0), steps[d]);
    const int64_t first = at.first[d] < 0 ? ceil_div(-at.first[d], steps[d]) : 0;
    return std::pair(first, std::min(end, steps_wanted));
  };
  const bool line_inside = at.first[line] >= 0 && at.first[line] < sizes[line];
  const auto [first_row, end_row] = line_inside ? inside(a, rows) : std::pair<int64_t, int64_t>();
  const auto [first_column, end_column] = inside(b, columns);
  const int64_t row_step = steps[a] * pitch[a], column_step = steps[b] * pitch[b];
  if (first_row == 0 && end_row == rows && first_column == 0 && end_column == columns) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) points[i][j] = data + (base + i * row_step + j * column_step);
    return;
  }
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      points[i][j] = i >= first_row && i < end_row && j >= first_column && j < end_column
                         ? data + (base + i * row_step + j * column_step)
                         : outside;
}

/// Calls f(read) with a function that reads a vector of channels of a pixel in memory.
template <class T, class F>
auto with_memory(const F& f) {
  return f([](const T* pixel, int64_t c, simd::Vector<T>& value) { value = simd::load(pixel + c); });
}

/// The same for pixels of the source from channel `first` on, which are `outside` in the padding.
template <class T, class F>
auto with_source(const ConvSource<T>& source, int64_t first, const T* outside, const F& f) {
  if (!source.is_normalized()) return with_memory<T>(f);
  return f([&](const T* pixel, int64_t c, simd::Vector<T>& value) {
    value = simd::load(pixel + c);
    if (pixel != outside) source.compute(first + c, value);
  });
}

}  // namespace pleat::ops::winograd
