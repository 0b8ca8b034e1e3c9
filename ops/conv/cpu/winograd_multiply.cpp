#include <algorithm>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/tile_product.h"
#include "pleat/ops/conv/cpu/winograd.h"
#include "pleat/ops/conv/cpu/winograd_tiles.h"
#include "pleat/ops/conv/cpu/winograd_transform.h"
#include "pleat/ops/conv/nhwc.h"

/// Winograd convolution forward, and the gradient of the input as another one. A task has a block of tiles
/// and some panels of result channels: the windows of its tiles are transformed into V [point][tile][C],
/// which stays in the second-level cache; for each panel, one product for each point gives M
/// [point][tile][panel], whose tiles are transformed into results.

namespace pleat::ops::winograd {
namespace {

using simd::lanes;
using simd::Vector;

/// Elements of V wanted in the second-level cache, and tiles for which a panel of weights is read at least.
constexpr int64_t source_elements_wanted = 96 << 10;
constexpr int64_t least_tiles = 32;
constexpr int64_t most_tiles = 128;

/// Result channels in panels of two vectors and at most one of one. The last one overlaps the one before it
/// where channels are no multiple of a vector: what both have is computed twice.
template <class T>
struct Panels {
  int64_t channels;

  int64_t count() const { return ceil_div(channels, 2 * lanes<T>) + (odd_pair() ? 1 : 0); }
  int64_t first(int64_t i) const {
    if (odd_pair()) return i == 0 ? 0 : channels - lanes<T>;
    return std::min(i * 2 * lanes<T>, channels - vectors(i) * lanes<T>);
  }
  int vectors(int64_t i) const { return odd_pair() || channels - i * 2 * lanes<T> <= lanes<T> ? 1 : 2; }

 private:
  /// More than a vector, less than two: two panels of one.
  bool odd_pair() const { return channels > lanes<T> && channels < 2 * lanes<T>; }
};

template <class T>
struct MultiplyPlan {
  TileGrid grid;
  int64_t channels;
  Panels<T> panels;
  int64_t block;  ///< columns of tiles
  int64_t blocks;
  int64_t groups;  ///< of panels
  /// From point to point in V and M.
  int64_t source_point, sums_point;

  MultiplyPlan(const ConvProblem& p, int m) : grid(p, m), channels(p.in_channels), panels{p.out_channels} {
    const int64_t columns = grid.columns();
    const int64_t fitting = round_up(source_elements_wanted / (grid.points * channels), 8);
    const int64_t share = round_up(ceil_div(columns * grid.lines, tasks_wanted), 8);
    const int64_t tiles = std::min(std::clamp(fitting, least_tiles, most_tiles), share);
    block = std::max<int64_t>(1, tiles / grid.lines);
    block = ceil_div(columns, ceil_div(columns, block));
    blocks = ceil_div(columns, block);
    groups = std::min(panels.count(), ceil_div(tasks_wanted, blocks));
    source_point = point_stride<T>(block * grid.slices * channels);
    sums_point = point_stride<T>(block * grid.lines * 2 * lanes<T>);
  }

  /// Elements of the weights of the panels before `panel`: [point][tap of the line][channel][lane] each.
  int64_t weights_before(int64_t panel) const {
    int64_t width = 0;
    for (int64_t i = 0; i < panel; ++i) width += panels.vectors(i) * lanes<T>;
    return grid.points * grid.line_taps * channels * width;
  }
};

/// The weights of panel `panel` as [point][tap of the line][channel][lane].
template <class T, int ma, int mb>
void transform_weights(const ConvProblem& p, const MultiplyPlan<T>& plan, const T* w, bool flipped,
                       int64_t panel, T* to) {
  using V = Vector<T>;
  constexpr int ra = taps<ma>, rb = taps<mb>;
  constexpr int64_t some = 32;  // channels at a time
  const auto [a, b, line, count] = plan.grid.kernels;
  const Spatial step{p.kernel[1] * p.kernel[2], p.kernel[2], 1};
  const int64_t all_taps = p.taps();
  const int64_t channels = plan.channels;
  const int64_t width = plan.panels.vectors(panel) * lanes<T>;
  const int64_t first = plan.panels.first(panel);
  alignas(64) T turned[ra * rb * some * 2 * lanes<T>];
  for (int64_t l = 0; l < plan.grid.line_taps; ++l)
    for (int64_t c = 0; c < channels; c += some) {
      const int64_t part = std::min(some, channels - c);
      for (int64_t i = 0; i < ra * rb; ++i) {
        T* of_tap = turned + i * some * width;
        const int64_t tap = l * step[line] + i / rb * step[a] + i % rb * step[b];
        if (flipped) {  // w [C, taps, K]
          const T* from = w + (c * all_taps + all_taps - 1 - tap) * plan.panels.channels + first;
          for (int64_t k = 0; k < part; ++k)
            std::copy_n(from + k * all_taps * plan.panels.channels, width, of_tap + k * width);
        } else {  // w [K, taps, C]
          transpose_matrix(of_tap, width, w + (first * all_taps + tap) * channels + c, all_taps * channels,
                           width, part);
        }
      }
      for (int64_t i = 0; i < part; ++i)
        for (int64_t lane = 0; lane < width; lane += lanes<T>)
          transform<V, Filter<ma>, Filter<mb>>(
              [&](int u, int v) {
                return *reinterpret_cast<const V*>(turned + ((u * rb + v) * some + i) * width + lane);
              },
              [&](int u, int v, const V& value) {
                const int64_t point = u * window<mb> + v;
                *reinterpret_cast<V*>(to + ((point * plan.grid.line_taps + l) * channels + c + i) * width +
                                      lane) = value;
              });
    }
}

/// M of a panel into results.
template <class T, int ma, int mb>
void write_results(const ConvProblem& p, const MultiplyPlan<T>& plan, int64_t begin, int64_t columns,
                   const T* sums, int64_t panel, const T* bias, T* y) {
  using V = Vector<T>;
  const TileGrid& grid = plan.grid;
  const int64_t width = plan.panels.vectors(panel) * lanes<T>;
  const int64_t first = plan.panels.first(panel);
  alignas(64) T beyond[2 * lanes<T>];  // where results outside go
  for (int64_t t = 0; t < columns * grid.lines; ++t, sums += width) {
    T* pixels[ma][mb];
    list_pixels<ma, mb, T>(grid.result_of(begin + t / grid.lines, t % grid.lines), p.output, grid.kernels,
                           p.out_channels, y + first, beyond, pixels);
    for (int64_t lane = 0; lane < width; lane += lanes<T>) {
      const V start = bias != nullptr ? *reinterpret_cast<const V*>(bias + first + lane) : V{};
      transform<V, Result<ma>, Result<mb>>(
          [&](int a, int b) {
            return *reinterpret_cast<const V*>(sums + (a * window<mb> + b) * plan.sums_point + lane);
          },
          [&](int a, int b, const V& value) { *reinterpret_cast<V*>(pixels[a][b] + lane) = value + start; });
    }
  }
}

template <class T, int ma, int mb>
void multiply(const ConvProblem& p, const T* x, const T* w, bool flipped, const T* bias, T* y) {
  const MultiplyPlan<T> plan(p, mb);
  const TileGrid& grid = plan.grid;
  const int64_t channels = plan.channels, depth = grid.line_taps * channels;
  const auto weights = scratch<T>(plan.weights_before(plan.panels.count()));
  parallel_chunks(plan.panels.count(), [&](int64_t panel) {
    transform_weights<T, ma, mb>(p, plan, w, flipped, panel,
                                 elements_of<T>(weights) + plan.weights_before(panel));
  });
  // What windows read in the padding.
  const auto zeros = scratch<T>(channels);
  std::fill_n(elements_of<T>(zeros), channels, T(0));
  parallel_chunks(plan.blocks * plan.groups, [&](int64_t task) {
    const auto memory = scratch<T>(grid.points * (plan.source_point + plan.sums_point));
    T* source = elements_of<T>(memory);
    T* sums = source + grid.points * plan.source_point;
    const int64_t begin = task / plan.groups * plan.block;
    const int64_t columns = std::min(plan.block, grid.columns() - begin);
    for (int64_t t = 0; t < columns * grid.slices; ++t) {
      const T* pixels[window<ma>][window<mb>];
      list_pixels<window<ma>, window<mb>, const T>(grid.source_of(begin + t / grid.slices, t % grid.slices),
                                                   p.input, grid.kernels, channels, x, elements_of<T>(zeros),
                                                   pixels);
      transform_pixels<Source<ma>, Source<mb>>(pixels, channels, source + t * channels, plan.source_point);
    }
    const int64_t group = task % plan.groups;
    for (int64_t panel = plan.panels.count() * group / plan.groups;
         panel < plan.panels.count() * (group + 1) / plan.groups; ++panel) {
      const int vectors = plan.panels.vectors(panel);
      const int64_t width = vectors * lanes<T>;
      const T* of_panel = elements_of<T>(weights) + plan.weights_before(panel);
      const auto run = vectors == 2 ? multiply_rows<T, 2> : multiply_rows<T, 1>;
      // A row of V and those of the next taps of the line lie side by side. One product has rows of a column.
      const int64_t products = grid.line_taps == 1 ? 1 : columns;
      for (int64_t i = 0; i < grid.points; ++i)
        for (int64_t c = 0; c < products; ++c)
          run({source + i * plan.source_point + c * grid.slices * channels, channels, 1,
               of_panel + i * depth * width, width, depth,
               sums + i * plan.sums_point + c * grid.lines * width, width},
              columns / products * grid.lines);
      write_results<T, ma, mb>(p, plan, begin, columns, sums, panel, bias, y);
    }
  });
}

template <class T>
int64_t workspace(const ConvProblem& p, int m) {
  const MultiplyPlan<T> plan(p, m);
  return (plan.weights_before(plan.panels.count()) + p.in_channels +
          num_threads() * plan.grid.points * (plan.source_point + plan.sums_point)) *
         static_cast<int64_t>(sizeof(T));
}

}  // namespace

template <class T>
void multiply(const ConvProblem& p, int m, const T* x, const T* w, bool flipped, const T* bias, T* y) {
  const bool square = find_kernels(p)->count == 2;
  const auto run = square ? (m == 4 ? multiply<T, 4, 4> : multiply<T, 2, 2>)
                          : (m == 4 ? multiply<T, 1, 4> : multiply<T, 1, 2>);
  run(p, x, w, flipped, bias, y);
}

template void multiply(const ConvProblem&, int, const float*, const float*, bool, const float*, float*);
template void multiply(const ConvProblem&, int, const double*, const double*, bool, const double*, double*);

int64_t multiply_workspace(const ConvProblem& p, int m) {
  int64_t bytes = 0;
  by_type(p, [&]<class T>(Type<T>) { bytes = workspace<T>(p, m); });
  return bytes;
}

}  // namespace pleat::ops::winograd
