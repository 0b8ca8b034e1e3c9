#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/tensor/transpose.h"
#include "pleat/ops/conv/cpu/winograd.h"
#include "pleat/ops/conv/nhwc.h"
#include "pleat/ops/matmul/tile_product.h"

/// Winograd convolution of a gather: forward, or a stride class of the gradient of the input. A task has a
/// block of tiles and some panels of result channels: the windows of its tiles are transformed into V
/// [point][tile][phase][C], which stays in the second-level cache; for each panel, one product for each point
/// gives M [point][tile][panel], whose tiles are transformed into results.
///
/// A transform mixes the pixels of a tile: what is rounded off the largest is an error of all its results,
/// also of those that do not read these pixels. So the tiles are measured on the way, and one in which a
/// result's own pixels are small beside the others is computed without transforms (DirectTiles). A pixel is
/// measured times the scale of its channel: one that the weights hardly read hides no other.

namespace pleat::ops::winograd {
namespace {

using simd::lanes;
using simd::Vector;

/// Elements of V wanted in the second-level cache, and tiles for which a panel of weights is read at least.
constexpr int64_t source_elements_wanted = 96 << 10;
constexpr int64_t least_tiles = 32;
constexpr int64_t most_tiles = 128;
/// Panels whose weights tell how much a channel counts, at most: reading all would show where images are
/// small.
constexpr int64_t most_sampled = 4;

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
  int64_t row;  ///< of V: channels of all phases
  Panels<T> panels;
  int64_t block;  ///< columns of tiles
  int64_t blocks;
  int64_t groups;  ///< of panels
  /// From point to point in V and M.
  int64_t source_point, sums_point;
  int64_t sample_step;  ///< from panel to panel of those sampled

  MultiplyPlan(const Gather& g, const Kernels& kernels, int m)
      : grid(g, kernels, m),
        channels(g.source_channels),
        row(grid.phases * channels),
        panels{g.result_channels} {
    const int64_t columns = grid.columns();
    const int64_t fitting = round_up(source_elements_wanted / (grid.points * row), 8);
    const int64_t share = round_up(ceil_div(columns * grid.lines, tasks_wanted), 8);
    const int64_t tiles = std::min(std::clamp(fitting, least_tiles, most_tiles), share);
    block = std::max<int64_t>(1, tiles / grid.lines);
    block = ceil_div(columns, ceil_div(columns, block));
    blocks = ceil_div(columns, block);
    groups = std::min(panels.count(), ceil_div(tasks_wanted, blocks));
    source_point = point_stride<T>(block * grid.slices * row);
    sums_point = point_stride<T>(block * grid.lines * 2 * lanes<T>);
    sample_step = ceil_div(panels.count(), most_sampled);
  }

  int64_t sampled() const { return ceil_div(panels.count(), sample_step); }
  /// Of a product: channels and phases of all taps of the line.
  int64_t depth() const { return grid.line_taps * row; }
  int64_t lanes_before(int64_t panel) const {
    int64_t width = 0;
    for (int64_t i = 0; i < panel; ++i) width += panels.vectors(i) * lanes<T>;
    return width;
  }
  /// Elements of the weights of the panels before `panel`: [point][tap of the line][phase][channel][lane]
  /// each.
  int64_t weights_before(int64_t panel) const { return grid.points * depth() * lanes_before(panel); }
};

/// Source channels whose weights are transformed at a time.
constexpr int64_t some_channels = 32;

/// The weights of panel `panel` and of `count` source channels from `begin` on, transformed by A and B, to
/// [point][tap of the line][phase][channel][lane]. Where `sums` is not null it gets sums of |weights| as
/// [channel][lane].
template <class A, class B, class T>
void transform_weights(const Gather& g, const MultiplyPlan<T>& plan, const GatherWeights<T>& w, int64_t panel,
                       int64_t begin, int64_t count, T* to, T* sums = nullptr) {
  using V = Vector<T>;
  constexpr int ra = A::in, rb = B::in;
  constexpr int64_t some = some_channels;
  const TileGrid& grid = plan.grid;
  const auto sizes = [&](std::size_t d) { return static_cast<int64_t>(g.dims[d].taps.size()); };
  const Spatial step{sizes(1) * sizes(2), sizes(2), 1};
  const std::size_t a = grid.kernels.a, b = grid.kernels.b;
  const int64_t channels = plan.channels, end = begin + count;
  const int64_t width = plan.panels.vectors(panel) * lanes<T>;
  const T* first = w.data + plan.panels.first(panel) * w.result;
  alignas(64) T transposed[ra * rb * some * 2 * lanes<T>];
  for (int64_t l = 0; l < grid.line_taps * grid.phases; ++l) {
    const int64_t phase = l % grid.phases;
    const int64_t of_phase = l / grid.phases * step[grid.kernels.line] + grid.first_tap(phase, a) * step[a] +
                             grid.first_tap(phase, b) * step[b];
    for (int64_t c = begin; c < end; c += some) {
      const int64_t part = std::min(some, end - c);
      for (int64_t i = 0; i < ra * rb; ++i) {
        T* of_tap = transposed + i * some * width;
        const int64_t tap =
            of_phase + i / rb * grid.tap_step[a] * step[a] + i % rb * grid.tap_step[b] * step[b];
        const T* from = first + w.taps[static_cast<std::size_t>(tap)] * w.tap + c * w.source;
        if (w.source == 1)
          transpose_matrix(of_tap, width, from, w.result, width, part);
        else
          for (int64_t k = 0; k < part; ++k) {
            for (int64_t lane = 0; lane < width; lane += line_elements<T>)
              __builtin_prefetch(from + (k + some) * w.source + lane);  // short pieces of the next channels
            std::copy_n(from + k * w.source, width, of_tap + k * width);
          }
        const auto share = static_cast<T>(grid.share(phase, a, i / rb) * grid.share(phase, b, i % rb));
        if (share != 1)
          std::transform(of_tap, of_tap + part * width, of_tap, [&](T weight) { return share * weight; });
      }
      for (int64_t i = 0; i < part; ++i) {
        const auto tap = [&](int u, int v, int64_t lane) {
          return simd::load(transposed + ((u * rb + v) * some + i) * width + lane);
        };
        for (int64_t lane = 0; lane < width; lane += lanes<T>)
          transform<V, A, B>([&](int u, int v) { return tap(u, v, lane); },
                             [&](int u, int v, const V& value) {
                               const int64_t point = u * B::out + v;
                               simd::store(to + (point * plan.depth() + l * channels + c + i) * width + lane,
                                           value);
                             });
        if (sums == nullptr) continue;
        T* const of_channel = sums + (c + i) * lanes<T>;
        V sum = l == 0 ? V{} : simd::load(of_channel);
        for (int u = 0; u < ra; ++u)
          for (int v = 0; v < rb; ++v)
            for (int64_t lane = 0; lane < width; lane += lanes<T>)
              sum += reinterpret_cast<V>(bits_of_magnitude<T>(tap(u, v, lane)));
        simd::store(of_channel, sum);
      }
    }
  }
}

/// How much a source channel counts: the mean of its |weights| in a sample, over that of the channel where it
/// is largest. `sums` is [sampled panel][channel][lane].
template <class T>
void scale_channels(const MultiplyPlan<T>& plan, const T* sums, T* scales) {
  T largest = 0;
  for (int64_t c = 0; c < plan.channels; ++c) {
    Vector<T> sum{};
    for (int64_t panel = 0; panel < plan.sampled(); ++panel)
      sum += simd::load(sums + (panel * plan.channels + c) * lanes<T>);
    scales[c] = sum_of_lanes(sum);
    if (!(scales[c] <= largest)) largest = scales[c];
  }
  const bool is_usable = largest > 0 && std::isfinite(largest);
  for (int64_t c = 0; c < plan.channels; ++c) scales[c] = is_usable ? scales[c] / largest : 1;
}

template <class T>
constexpr double largest_in_transforms = overflow_reserve* static_cast<double>(std::numeric_limits<T>::max());

/// Whether the error of transforms, which is as large as the largest pixel of a tile, is like that of the
/// sums that its results are, of which `least` has the least sum of |pixels|, both scaled. Then it is within
/// 8 2^-24 the root of the products times the sum of the |products| (tests/ops/conv_outliers_test.cpp).
template <class T>
bool is_even(double largest, double least) {
  return largest < largest_in_transforms<T> && 3 * largest <= least;
}

/// Tiles of a task that are computed as sums of products of pixels and taps.
template <class T, int ma, int mb, int r>
class DirectTiles {
 public:
  static constexpr int rows = window<ma, r>, columns = window<mb, r>;

  DirectTiles(const Gather& g, const MultiplyPlan<T>& plan, const ConvSource<T>& x, const GatherWeights<T>& w,
              const T* zeros, const T* scales)
      : gather_(g), plan_(plan), x_(x), w_(w), zeros_(zeros), scales_(scales) {}

  /// Takes a tile if its pixels need it; tiles come in the order of the task.
  void look_at(int64_t tile, int64_t column, int64_t line) {
    const Size size = size_of(column, line);
    if (!is_even<T>(size.largest, size.least) || !(size.unscaled < largest_in_transforms<T>))
      tiles_.push_back(tile);
  }
  bool has(int64_t tile) const {
    return !tiles_.empty() && std::binary_search(tiles_.begin(), tiles_.end(), tile);
  }

  void prepare(int64_t panel) {
    if (tiles_.empty()) return;
    width_ = plan_.panels.vectors(panel) * lanes<T>;
    if (weights_ == nullptr) weights_ = scratch<T>(taps<ma, r> * taps<mb, r> * plan_.depth() * 2 * lanes<T>);
    transform_weights<Identity<taps<ma, r>>, Identity<taps<mb, r>>>(gather_, plan_, w_, panel, 0,
                                                                    plan_.channels, elements_of<T>(weights_));
  }
  /// The results of the tile, plus a bias where there is one, to those pixels.
  [[gnu::noinline]] void write(int64_t column, int64_t line, const T* bias, T* const (&pixels)[ma][mb]) {
    alignas(64) T sums[ma * mb * 2 * lanes<T>];
    multiply(column, line, sums);
    for (int i = 0; i < ma * mb; ++i)
      for (int64_t lane = 0; lane < width_; lane += lanes<T>)
        simd::store(
            pixels[i / mb][i % mb] + lane,
            simd::load(sums + i * width_ + lane) + (bias != nullptr ? simd::load(bias + lane) : Vector<T>{}));
  }

 private:
  /// to[result of the tile][lane of the panel]
  void multiply(int64_t column, int64_t line, T* to) {
    if (pixels_ == nullptr) pixels_ = scratch<T>(slices() * rows * columns * plan_.channels);
    for_slices(column, line, [&](int64_t l, const auto& pixels, const auto& read) {
      transform_pixels<Identity<rows>, Identity<columns>>(pixels, plan_.channels, pixel(l, 0, 0),
                                                          plan_.channels, read);
    });
    std::fill_n(to, ma * mb * width_, T(0));
    const auto run = width_ == lanes<T> ? multiply_rows<T, 1> : multiply_rows<T, 2>;
    for (int64_t l = 0; l < slices(); ++l)
      for (int u = 0; u < taps<ma, r>; ++u)
        for (int v = 0; v < taps<mb, r>; ++v)
          for (int i = 0; i < ma; ++i)
            run({pixel(l, i + u, v), plan_.channels, 1,
                 elements_of<T>(weights_) +
                     ((u * taps<mb, r> + v) * plan_.depth() + l * plan_.channels) * width_,
                 width_, plan_.channels, to + i * mb * width_, width_, to + i * mb * width_, width_},
                mb);
  }

  /// Of the source that a tile reads: taps of the line and phases.
  int64_t slices() const { return plan_.grid.line_taps * plan_.grid.phases; }
  T* pixel(int64_t slice, int64_t row, int64_t column) const {
    return elements_of<T>(pixels_) + ((slice * rows + row) * columns + column) * plan_.channels;
  }

  /// Calls f(slice, pixels, read) for the slices of a tile's window.
  template <class F>
  void for_slices(int64_t column, int64_t line, const F& f) const {
    const TileGrid& grid = plan_.grid;
    with_source(x_, 0, zeros_, [&](const auto& read) {
      for (int64_t l = 0; l < slices(); ++l) {
        const T* pixels[rows][columns];
        list_pixels<rows, columns, const T>(grid.source_of(column, line + l / grid.phases, l % grid.phases),
                                            grid.source, grid.source_step, grid.kernels, plan_.channels,
                                            x_.data(), zeros_, pixels);
        f(l, pixels, read);
      }
    });
  }

  struct Size {
    double largest;   ///< |x| of a tile, scaled
    double least;     ///< sum of |x| over what a result reads, scaled
    double unscaled;  ///< the largest |x|
  };
  Size size_of(int64_t column, int64_t line) const {
    double sums[rows][columns]{};
    Largest<T> largest, unscaled;
    for_slices(column, line, [&](int64_t, const auto& pixels, const auto& read) {
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
          Vector<T> sum{};
          for (int64_t c = 0; c < plan_.channels; c += lanes<T>) {
            const int64_t first = std::min(c, plan_.channels - lanes<T>);
            const Vector<T> values = magnitudes<1, 1>(pixels, i, j, first, read);
            const Vector<T> scaled = values * simd::load(scales_ + first);
            unscaled.add(values);
            largest.add(scaled);
            if (first == c) sum += scaled;
          }
          sums[i][j] += static_cast<double>(sum_of_lanes(sum));
        }
    });
    const Spatial results = plan_.grid.result_of(column, line).results;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < (ma == 1 ? 1 : results[plan_.grid.kernels.a]); ++i)
      for (int64_t j = 0; j < results[plan_.grid.kernels.b]; ++j) {
        double sum = 0;
        for (int u = 0; u < taps<ma, r>; ++u)
          for (int v = 0; v < taps<mb, r>; ++v) sum += sums[i + u][j + v];
        least = std::min(least, sum);
      }
    return {largest.value(), least, unscaled.value()};
  }

  const Gather& gather_;
  const MultiplyPlan<T>& plan_;
  const ConvSource<T>& x_;
  const GatherWeights<T>& w_;
  const T* zeros_;
  const T* scales_;
  std::vector<int64_t> tiles_;
  int64_t width_ = 0;
  std::shared_ptr<std::byte> weights_, pixels_;
};

/// Transforms a tile's window in the source into V. Returns a sum of |x|, scaled, of some pixels that each
/// result reads, the least.
template <class T, int ma, int mb, int r>
T transform_window(const MultiplyPlan<T>& plan, const ConvSource<T>& x, const T* zeros, const T* scales,
                   int64_t column, int64_t slice, T* to, Largest<T>& squares) {
  const TileGrid& grid = plan.grid;
  simd::Vector<T> sums[4]{};
  for (int64_t phase = 0; phase < grid.phases; ++phase) {
    const TilePixels at = grid.source_of(column, slice, phase);
    const T* pixels[window<ma, r>][window<mb, r>];
    list_pixels<window<ma, r>, window<mb, r>, const T>(at, grid.source, grid.source_step, grid.kernels,
                                                       plan.channels, x.data(), zeros, pixels);
    const auto rows = grid.read_by_all(at, grid.kernels.a, plan.row < 32 ? r - 1 : 1),
               columns = grid.read_by_all(at, grid.kernels.b, plan.row < 64 ? r - 1 : 1);
    T* const window = to + phase * plan.channels;
    with_source(x, 0, zeros, [&](const auto& read) {
      transform_pixels<Source<ma, r>, Source<mb, r>>(pixels, plan.channels, window, plan.source_point, read);
      const auto add = [&](auto height, auto width) {
        for (int64_t c = 0; c + lanes<T> <= plan.channels; c += lanes<T>) {
          const Vector<T> scale = simd::load(scales + c);
          for (std::size_t i = 0; i < 4; ++i)
            sums[i] += magnitudes<height, width>(pixels, rows[i / 2], columns[i % 2], c, read) * scale;
        }
      };
      constexpr int more_rows = ma == 1 ? 1 : r - 1;
      if (plan.row < 32)
        add(std::integral_constant<int, more_rows>(), std::integral_constant<int, r - 1>());
      else if (plan.row < 64)
        add(std::integral_constant<int, 1>(), std::integral_constant<int, r - 1>());
      else
        add(std::integral_constant<int, 1>(), std::integral_constant<int, 1>());
    });
    add_squares<Source<ma, r>, Source<mb, r>>(window, plan.channels, plan.source_point, scales, squares);
  }
  return least_of_halves(sums);
}

/// M of a panel into results.
template <class T, int ma, int mb, int r>
void write_results(const MultiplyPlan<T>& plan, int64_t begin, int64_t columns, const T* sums,
                   DirectTiles<T, ma, mb, r>& direct, int64_t panel, const T* bias, T* y,
                   ChannelSums<T>* sums_of_y, const RowFinish<T>& finish) {
  using V = Vector<T>;
  const TileGrid& grid = plan.grid;
  const int64_t width = plan.panels.vectors(panel) * lanes<T>;
  const int64_t first = plan.panels.first(panel);
  alignas(64) T beyond[2 * lanes<T>];  // where results outside go
  // Two panels, which threads may compute at once, can share channels: only what is finished goes to y.
  alignas(64) T unfinished[ma * mb][2 * lanes<T>];
  grid.for_tiles(begin, columns, grid.lines, [&](int64_t tile, int64_t column, int64_t line) {
    T* pixels[ma][mb];
    list_pixels<ma, mb, T>(grid.result_of(column, line), grid.result, grid.result_step, grid.kernels,
                           plan.panels.channels, y + first, beyond, pixels);
    T* places[ma * mb];
    int64_t inside = 0;
    for (auto& row : pixels)
      for (T*& pixel : row)
        if (pixel != beyond) {
          places[inside] = pixel;
          if (finish) pixel = unfinished[inside];
          ++inside;
        }
    if (direct.has(tile))
      direct.write(column, line, bias != nullptr ? bias + first : nullptr, pixels);
    else
      for (int64_t lane = 0; lane < width; lane += lanes<T>) {
        const V start = bias != nullptr ? simd::load(bias + first + lane) : V{};
        transform<V, Result<ma, r>, Result<mb, r>>(
            [&](int a, int b) { return simd::load(sums + (a * window<mb, r> + b) * plan.sums_point + lane); },
            [&](int a, int b, const V& value) { simd::store(pixels[a][b] + lane, value + start); });
      }
    sums += width;
    for (int64_t i = 0; finish && i < inside; ++i) {
      finish.run(unfinished[i], places[i] - y, width);
      std::copy_n(unfinished[i], width, places[i]);
    }
    if (sums_of_y == nullptr) return;
    sums_of_y->add(
        begin / plan.block, plan.lanes_before(panel), first, width, inside,
        [&](int64_t i) { return places[i]; }, [&](int64_t i) { return places[i] - y; });
  });
}

template <class T, int ma, int mb, int r>
TransformedWeights<T> transform_weights(const Gather& g, const Kernels& kernels, const GatherWeights<T>& w) {
  const MultiplyPlan<T> plan(g, kernels, mb);
  const int64_t elements = plan.weights_before(plan.panels.count());
  // Behind the weights the scales of channels, and zeros.
  const auto packed = w.packed(elements + 2 * plan.channels, [&](T* weights) {
    const auto sums_of_weights = scratch<T>(plan.sampled() * plan.channels * lanes<T>);
    const int64_t parts = ceil_div(plan.channels, some_channels);
    parallel_chunks(plan.panels.count() * parts, [&](int64_t i) {
      const int64_t panel = i / parts, first = i % parts * some_channels;
      T* const sums_of_panel =
          panel % plan.sample_step == 0
              ? elements_of<T>(sums_of_weights) + panel / plan.sample_step * plan.channels * lanes<T>
              : nullptr;
      transform_weights<Filter<ma, r>, Filter<mb, r>>(g, plan, w, panel, first,
                                                      std::min(some_channels, plan.channels - first),
                                                      weights + plan.weights_before(panel), sums_of_panel);
    });
    scale_channels(plan, elements_of<T>(sums_of_weights), weights + elements);
    std::fill_n(weights + elements + plan.channels, plan.channels, T(0));
  });
  return {w, packed, {packed, reinterpret_cast<std::byte*>(elements_of<T>(packed) + elements)}};
}

template <class T, int ma, int mb, int r>
void multiply(const Gather& g, const Kernels& kernels, const ConvSource<T>& x,
              const TransformedWeights<T>& weights, const T* bias, T* y, ChannelSums<T>* sums_of_y,
              const RowFinish<T>& finish) {
  const MultiplyPlan<T> plan(g, kernels, mb);
  const TileGrid& grid = plan.grid;
  const int64_t row = plan.row, depth = plan.depth();
  if (sums_of_y != nullptr) sums_of_y->prepare(plan.blocks, plan.lanes_before(plan.panels.count()));
  const T* const scales = elements_of<T>(weights.scales);
  const T* const zeros = scales + plan.channels;
  parallel_chunks(plan.blocks * plan.groups, [&](int64_t task) {
    const auto memory = scratch<T>(grid.points * (plan.source_point + plan.sums_point));
    T* source = elements_of<T>(memory);
    T* sums = source + grid.points * plan.source_point;
    const int64_t begin = task / plan.groups * plan.block;
    const int64_t columns = std::min(plan.block, grid.columns() - begin);
    std::vector<T> least(static_cast<std::size_t>(columns * grid.slices));
    Largest<T> squares;
    T least_of_all = std::numeric_limits<T>::infinity();
    grid.for_tiles(begin, columns, grid.slices, [&](int64_t t, int64_t column, int64_t slice) {
      const T sum =
          transform_window<T, ma, mb, r>(plan, x, zeros, scales, column, slice, source + t * row, squares);
      least[static_cast<std::size_t>(t)] = sum;
      least_of_all = std::min(least_of_all, sum);
    });
    DirectTiles<T, ma, mb, r> direct(g, plan, x, weights.given, zeros, scales);
    // The root is at least as large as a pixel that is larger than all others, and several times as large as
    // the largest of ordinary ones.
    const double largest = squares.root() / 24;
    if (!is_even<T>(largest, static_cast<double>(grid.line_taps) * static_cast<double>(least_of_all)))
      grid.for_tiles(begin, columns, grid.lines, [&](int64_t tile, int64_t column, int64_t line) {
        double sum = 0;
        for (int64_t l = 0; l < grid.line_taps; ++l)
          sum +=
              static_cast<double>(least[static_cast<std::size_t>((column - begin) * grid.slices + line + l)]);
        if (!is_even<T>(largest, sum)) direct.look_at(tile, column, line);
      });
    const int64_t group = task % plan.groups;
    for (int64_t panel = plan.panels.count() * group / plan.groups;
         panel < plan.panels.count() * (group + 1) / plan.groups; ++panel) {
      const int vectors = plan.panels.vectors(panel);
      const int64_t width = vectors * lanes<T>;
      const T* of_panel = elements_of<T>(weights.transformed) + plan.weights_before(panel);
      const auto run = vectors == 2 ? multiply_rows<T, 2> : multiply_rows<T, 1>;
      // A row of V and those of the next taps of the line lie side by side. One product has rows of a column.
      const int64_t products = grid.line_taps == 1 ? 1 : columns;
      for (int64_t i = 0; i < grid.points; ++i)
        for (int64_t c = 0; c < products; ++c)
          run({source + i * plan.source_point + c * grid.slices * row, row, 1, of_panel + i * depth * width,
               width, depth, sums + i * plan.sums_point + c * grid.lines * width, width},
              columns / products * grid.lines);
      direct.prepare(panel);
      write_results<T, ma, mb, r>(plan, begin, columns, sums, direct, panel, bias, y, sums_of_y, finish);
    }
  });
  if (sums_of_y == nullptr) return;
  for (int64_t panel = 0; panel < plan.panels.count(); ++panel)
    sums_of_y->merge(plan.lanes_before(panel), plan.panels.first(panel),
                     plan.panels.vectors(panel) * lanes<T>);
}

}  // namespace

template <class T>
int64_t multiply_workspace(const Gather& g, const Kernels& kernels, int m) {
  const MultiplyPlan<T> plan(g, kernels, m);
  return (plan.weights_before(plan.panels.count()) + (plan.sampled() * lanes<T> + 2) * plan.channels +
          num_threads() * plan.grid.points * (plan.source_point + plan.sums_point)) *
         static_cast<int64_t>(sizeof(T));
}

template <class T>
TransformedWeights<T> transform_weights(const Gather& g, const Kernels& kernels, int m,
                                        const GatherWeights<T>& w) {
  TransformedWeights<T> result;
  by_kernels(kernels, m,
             [&](auto ma, auto mb, auto r) { result = transform_weights<T, ma, mb, r>(g, kernels, w); });
  return result;
}

template <class T>
void multiply(const Gather& g, const Kernels& kernels, int m, const ConvSource<T>& x,
              const TransformedWeights<T>& weights, const T* bias, T* y, ChannelSums<T>* sums,
              const RowFinish<T>& finish) {
  by_kernels(kernels, m, [&](auto ma, auto mb, auto r) {
    multiply<T, ma, mb, r>(g, kernels, x, weights, bias, y, sums, finish);
  });
}

#define PLEAT_WINOGRAD_MULTIPLY(T)                                                                          \
  template TransformedWeights<T> transform_weights(const Gather&, const Kernels&, int,                      \
                                                   const GatherWeights<T>&);                                \
  template void multiply(const Gather&, const Kernels&, int, const ConvSource<T>&,                          \
                         const TransformedWeights<T>&, const T*, T*, ChannelSums<T>*, const RowFinish<T>&); \
  template int64_t multiply_workspace<T>(const Gather&, const Kernels&, int);
PLEAT_WINOGRAD_MULTIPLY(float)
PLEAT_WINOGRAD_MULTIPLY(double)
#undef PLEAT_WINOGRAD_MULTIPLY

}  // namespace pleat::ops::winograd
