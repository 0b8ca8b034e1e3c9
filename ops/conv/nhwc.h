// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/problem.h"

/// What implementations share that see a channels-last tensor as a matrix: one row for each pixel, one column
/// for each channel.

namespace pleat::ops {

/// Calls `f(Type<T>{})` with the type in which a problem is computed: float or double.
template <class F>
void by_type(const ConvProblem& problem, F f) {
  if (problem.dtype == float64)
    f(Type<double>{});
  else
    f(Type<float>{});
}

/// Whether each output row is a product of the weights with one input row.
inline bool is_pointwise(const ConvProblem& p) {
  return p.is_pointwise(0) && p.is_pointwise(1) && p.is_pointwise(2);
}

/// The convolution of dy, with flipped weights, that gives dx where stride is 1: channels exchanged, padding
/// flipped. That may be negative (input beyond the last window), which an unfold reads as a
/// shift.
inline ConvProblem transposed_problem(const ConvProblem& p) {
  ConvProblem back = p;
  std::swap(back.in_channels, back.out_channels);
  std::swap(back.input, back.output);
  for (std::size_t d = 0; d < 3; ++d) {
    back.padding_low[d] = p.dilation[d] * (p.kernel[d] - 1) - p.padding_low[d];
    back.padding_high[d] = p.dilation[d] * (p.kernel[d] - 1) - p.padding_high[d];
  }
  return back;
}

/// The pixel [n, d, h, w] of a row.
struct Pixel {
  int64_t n, d, h, w;

  Pixel(int64_t row, const Spatial& sizes) {
    w = row % sizes[2];
    row /= sizes[2];
    h = row % sizes[1];
    row /= sizes[1];
    d = row % sizes[0];
    n = row / sizes[0];
  }

  /// To the next row.
  void advance(const Spatial& sizes) {
    if (++w < sizes[2]) return;
    w = 0;
    if (++h < sizes[1]) return;
    h = 0;
    if (++d < sizes[0]) return;
    d = 0;
    ++n;
  }
};

/// Memory for elements that a pass needs meanwhile, not initialised; null for none.
template <class T>
std::shared_ptr<std::byte> scratch(int64_t elements) {
  return elements == 0 ? nullptr : allocate(elements * static_cast<int64_t>(sizeof(T)));
}

template <class T>
T* elements_of(const std::shared_ptr<std::byte>& memory) {
  return reinterpret_cast<T*>(memory.get());
}

/// Rows cut into equal tiles, and these into chunks that are summed apart: a function of the problem alone,
/// so that no result depends on the number of threads.
struct RowTiles {
  int64_t rows;  ///< in all
  int64_t tile;  ///< rows of a tile
  int64_t tiles;

  RowTiles(int64_t rows_, int64_t tile_) : rows(rows_), tile(tile_), tiles(ceil_div(rows_, tile_)) {}
  int64_t first(int64_t t) const { return t * tile; }
  int64_t size(int64_t t) const { return std::min(tile, rows - t * tile); }
};

/// total[i] = partials[0][i] + partials[1][i] + ..., in this order for every number of threads, and rounded
/// once. Overwrites partials[0].
template <class T, class Total>
void sum_partials(T* partials, int64_t count, int64_t size, Total* total) {
  parallel_for(0, size, 4096, [&](int64_t first, int64_t last) {
    for (int64_t c = 1; c < count; ++c)
      for (int64_t i = first; i < last; ++i) partials[i] += partials[c * size + i];
    for (int64_t i = first; i < last; ++i) total[i] = convert<Total>(partials[i]);
  });
}

/// Tasks into which work is cut, whatever the number of threads (no result may depend on it): enough for
/// many, few enough that what each begins with costs little.
inline constexpr int64_t tasks_wanted = 16;

/// How many chunks to sum apart: enough for many threads, few enough that their partial sums stay small.
inline int64_t chunks_for(int64_t tiles, int64_t partial_bytes) {
  constexpr int64_t most_bytes = int64_t{64} << 20;
  return std::min(tiles,
                  std::clamp(most_bytes / std::max<int64_t>(partial_bytes, 1), int64_t{2}, tasks_wanted));
}

}  // namespace pleat::ops
