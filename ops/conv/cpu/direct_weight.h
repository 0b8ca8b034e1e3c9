// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/gather.h"
#include "pleat/ops/conv/nhwc.h"

/// Of the gradient of the weight (direct_weight.cpp): how it is cut into tasks, panels and tiles; a tile, its
/// sums in registers and what it fetches meanwhile; and the copies into the panels that tiles read.

namespace pleat::ops::direct_weight {

using simd::lanes;
using simd::Vector;

/// Rows of a tile.
inline constexpr int most_rows = simd::tile_rows;
/// Pixels that a tile sums in registers, at most: of more, a panel would not stay in the first-level cache.
inline constexpr int64_t most_pixels = 256;
/// About how many products an element of a panel is copied for: as many as the caches allow, or down to as
/// many as hide the copy where that gives more threads work.
inline constexpr int64_t most_depth = 512;
inline constexpr int64_t least_depth = 128;
/// Pixels that are worth sums of their own.
inline constexpr int64_t chunk_pixels = 512;
/// Channels and filters of small groups that a task takes together, about: pixels are read by whole lines of
/// the cache, some at a time.
inline constexpr int64_t channels_together = 64;
/// Elements between blocks of a panel, so that they do not begin in the same set.
inline constexpr int64_t block_gap = 16;

/// What the vectors of a tile of dw run along: the elements of the windows, or the filters.
enum class Along : unsigned char { windows, filters };

template <class T>
inline constexpr int64_t tile_width = 2 * lanes<T>;
/// Of `rest` elements of a window the vectors of the next tile: the last 3 at once, where registers hold
/// their sums.
inline constexpr int most_vectors = simd::registers == 32 ? 3 : 2;
template <class T>
int64_t window_vectors(int64_t rest) {
  const int64_t vectors = ceil_div(rest, lanes<T>);
  return vectors <= most_vectors ? vectors : 2;
}
/// Filters of dy that lie side by side in a panel.
template <class T, Along along>
inline constexpr int64_t filter_block = along == Along::windows ? most_rows : tile_width<T>;

/// How a problem is cut, by the problem alone. Channels and filters are those of a group.
template <class T>
struct WeightPlan {
  int64_t together;  ///< groups of a task
  bool taps_join;    ///< whether taps of a line are elements of one window, side by side
  Along along;
  bool skips_padding;  ///< else it is copied as zeros, and multiplied
  bool in_place;       ///< whether x is read where it lies: single taps, for which a copy would be read once
  int64_t source_block;  ///< channels of x that lie side by side in a panel
  int64_t channels;      ///< of x, in a task
  int64_t filters;       ///< in a task
  int64_t channel_blocks;
  int64_t filter_blocks;
  int64_t blocks;  ///< of dw
  GatherPieces pieces;
  int64_t chunks;

  explicit WeightPlan(const ConvProblem& p) : WeightPlan(p, windows_of(p), most_depth) {
    for (int64_t depth = most_depth / 2; tasks() < tasks_wanted && depth >= least_depth; depth /= 2)
      *this = WeightPlan(p, windows_of(p), depth);
  }

  int64_t tasks() const { return blocks * chunks; }
  int64_t source_block_elements() const { return pieces.buffer_pixels() * source_block + block_gap; }
  /// With a vector's reach beyond the last window.
  int64_t source_elements() const {
    if (in_place) return 0;
    return together * source_blocks() * source_block_elements() + tile_width<T>;
  }
  int64_t source_blocks() const { return ceil_div(channels, source_block); }
  int64_t filter_block_width() const {
    return along == Along::windows ? filter_block<T, Along::windows> : filter_block<T, Along::filters>;
  }
  int64_t filter_block_elements() const {
    return std::min(pieces.pixels_of_piece(), most_pixels) * filter_block_width() + block_gap;
  }
  int64_t filter_elements() const {
    return together * ceil_div(filters, filter_block_width()) * filter_block_elements();
  }
  /// A row of sums: dw's own when vectors lie along windows.
  int64_t leading(const ConvProblem& p) const {
    return along == Along::windows ? p.depth() : round_up(p.group_out(), lanes<T>);
  }
  /// Elements of one chunk's sums for a group.
  int64_t sums(const ConvProblem& p) const {
    return leading(p) * (along == Along::windows ? p.group_out() : p.depth());
  }
  bool sums_are_result() const { return along == Along::windows && chunks == 1; }

 private:
  /// The pixels of a 1x1 convolution are one line.
  static Gather windows_of(const ConvProblem& p) {
    if (!is_pointwise(p)) return forward_gather(p);
    ConvProblem line = p;
    line.batch = 1;
    line.input = line.output = {1, 1, p.batch * p.output_pixels()};
    return forward_gather(line);
  }
  /// How many windows have an element of x, about.
  static int64_t windows_of_pixel(const ConvProblem& p) {
    return std::max<int64_t>(p.taps() / p.stride[0] / p.stride[1] / p.stride[2], 1);
  }
  static int64_t pixels_of_piece(const Gather& gather) {
    return std::max(gather.pixels() / tasks_wanted, chunk_pixels);
  }
  /// Loads or products of all tiles that `across` lanes times `down` rows take, whichever are more.
  static int64_t tile_cost(int64_t across, int64_t down) {
    int64_t cost = 0;
    for (int64_t lane = 0; lane < across; lane += tile_width<T>) {
      const int64_t vectors = across - lane > lanes<T> ? 2 : 1;
      const int64_t rest = down % most_rows;
      cost += down / most_rows * std::max(most_rows * vectors, most_rows + vectors);
      if (rest > 0) cost += std::max(rest * vectors, rest + vectors);
    }
    return cost;
  }
  Along better(const ConvProblem& p) const {
    const int64_t run = (taps_join ? p.kernel[2] : 1) * p.group_in();
    // Sums along filters have to be transposed in the end.
    return 20 * tile_cost(run, p.group_out()) <= 21 * tile_cost(p.group_out(), run) ? Along::windows
                                                                                    : Along::filters;
  }
  /// Whether joined taps take longer for the padding of their lines and slices than the lists of the windows
  /// that lie inside, for each window and line of taps.
  bool pays_to_skip(const ConvProblem& p, const Gather& gather) const {
    constexpr double of_list = 3;
    const int64_t run = p.kernel[2] * p.group_in();
    const int64_t tiles =
        along == Along::windows ? tile_cost(run, p.group_out()) : tile_cost(p.group_out(), run);
    double inside = 1;
    for (std::size_t d = 0; d < 2; ++d) {
      const GatherDim& dim = gather.dims[d];
      int64_t pixels = 0;
      for (std::size_t tap = 0; tap < dim.taps.size(); ++tap) {
        const auto [first, end] = dim.inside(tap, gather.source[d]);
        pixels += end - first;
      }
      inside *= static_cast<double>(pixels) / static_cast<double>(dim.count * p.kernel[d]);
    }
    return (1 - inside) * static_cast<double>(together * tiles) > of_list;
  }
  static int64_t equal_blocks(int64_t size, int64_t wanted, int64_t multiple) {
    return std::min(size, round_up(ceil_div(size, ceil_div(size, wanted)), multiple));
  }

  WeightPlan(const ConvProblem& p, const Gather& gather, int64_t depth)
      : together(std::clamp<int64_t>(channels_together / std::max(p.group_in(), p.group_out()), 1, p.groups)),
        taps_join(p.group_in() < tile_width<T> && p.kernel[2] > 1 && p.dilation[2] == 1),
        along(better(p)),
        skips_padding(!taps_join || pays_to_skip(p, gather)),
        // Vectors along windows must not reach beyond the last channel.
        in_place(p.taps() == 1 && !is_crowded<T>(p.in_channels) &&
                 (along == Along::filters || p.group_in() % lanes<T> == 0)),
        source_block(p.group_in() < tile_width<T> ? p.group_in()
                     : along == Along::windows    ? tile_width<T>
                                                  : most_rows),
        channels(equal_blocks(p.group_in(), std::max(depth / p.taps(), tile_width<T>), tile_width<T>)),
        filters(equal_blocks(p.group_out(), std::max(depth / windows_of_pixel(p), 2 * tile_width<T>),
                             tile_width<T>)),
        channel_blocks(ceil_div(p.group_in(), channels)),
        filter_blocks(ceil_div(p.group_out(), filters)),
        blocks(ceil_div(p.groups, together) * channel_blocks * filter_blocks),
        pieces(GatherPieces::for_sums(gather, buffer_elements_wanted / (together * channels),
                                      pixels_of_piece(gather), in_place)),
        chunks(std::clamp<int64_t>(std::min(ceil_div(tasks_wanted, blocks), pieces.pixels() / chunk_pixels),
                                   1, pieces.count())) {}
};

/// Where a tile is added to: `rows` of `leading` elements.
template <class T>
struct TileSums {
  T* sums;
  int64_t leading;
  int64_t width;    ///< elements of a row, at most the tile's
  bool accumulate;  ///< else overwritten
};

/// Memory that will be read after the tiles that are being summed: with each of their pixels comes what lies
/// `pitch` elements further, into the second-level cache.
template <class T>
struct Ahead {
  const T* at;
  int64_t pitch;
};

/// Where a window and its pixel of dy lie.
struct WindowAt {
  int64_t x;
  int64_t dy;
};

/// sums[row][lane] += the products of x and dy over `count` windows: a tile's rows are filters of dy, its
/// lanes elements of a window, or the other way round.
template <class T, Along along, int rows, int vectors>
void sum_outer(const T* x, const T* dy, const WindowAt* windows, int64_t count, Ahead<T> next_x,
               Ahead<T> next_dy, const TileSums<T>& to) {
  using V = Vector<T>;
  constexpr int64_t width = vectors * lanes<T>;
  if (to.accumulate)
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors; ++v) __builtin_prefetch(to.sums + i * to.leading + v * lanes<T>, 1);
  V total[rows][vectors] = {};
  for (int64_t p = 0; p < count; ++p) {
    const T* across = along == Along::windows ? x + windows[p].x : dy + windows[p].dy;
    const T* down = along == Along::windows ? dy + windows[p].dy : x + windows[p].x;
    __builtin_prefetch(next_x.at, 0, 2);
    __builtin_prefetch(next_dy.at, 0, 2);
    next_x.at += next_x.pitch;
    next_dy.at += next_dy.pitch;
    V a[vectors];
    for (int v = 0; v < vectors; ++v) a[v] = simd::load(across + v * lanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const V element = down[i] - V{};  // in every lane
      for (int v = 0; v < vectors; ++v) total[i][v] += element * a[v];
    }
  }
  for (int i = 0; i < rows; ++i) {
    T* sums = to.sums + i * to.leading;
    if (to.width == width) {
      for (int v = 0; v < vectors; ++v) {
        T* const sum = sums + v * lanes<T>;
        simd::store(sum, to.accumulate ? simd::load(sum) + total[i][v] : total[i][v]);
      }
    } else {
      alignas(64) T part[width];
      std::memcpy(part, total[i], sizeof part);
      for (int64_t k = 0; k < to.width; ++k) sums[k] = to.accumulate ? sums[k] + part[k] : part[k];
    }
  }
}

template <class T>
using SumOuter = void (*)(const T*, const T*, const WindowAt*, int64_t, Ahead<T>, Ahead<T>,
                          const TileSums<T>&);

/// sum_outer for 1 ... most_rows rows.
template <class T, Along along, int vectors>
constexpr std::array<SumOuter<T>, most_rows> sum_outer_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array<SumOuter<T>, most_rows>{sum_outer<T, along, i + 1, vectors>...};
}
(std::make_integer_sequence<int, most_rows>());

/// Rows of memory that will be read next, of which each tile fetches a column as wide as a cache line.
template <class T>
class ReadAhead {
 public:
  ReadAhead() = default;
  /// Rows of `width` elements, `pitch` apart.
  ReadAhead(const T* at, int64_t width, int64_t pitch) : at_(at), width_(width), pitch_(pitch) {}

  Ahead<T> next() {
    if (width_ <= 0) return {at_, 0};
    width_ -= line_elements<T>;
    return {std::exchange(at_, at_ + line_elements<T>), pitch_};
  }

 private:
  const T* at_ = nullptr;
  int64_t width_ = 0;
  int64_t pitch_ = 0;
};

/// Channels of some groups of evenly spaced pixels, and where they are copied to.
template <class T>
struct PanelPixels {
  const T* from;
  int64_t pitch;  ///< to the next pixel
  const T* end;   ///< of the tensor
  int64_t groups;
  int64_t group_pitch;
  int64_t channels;  ///< of each group
  T* to;             ///< [group][block of channels][pixel][channel]
  int64_t between;   ///< from a block to the next
  bool read_on;      ///< whether what follows is copied next
};

/// Copies whole blocks, as a constant size needs no call: what follows the last channel in memory goes into
/// unused lanes. What is read next is fetched meanwhile, as far ahead as hides the latency of memory.
template <int64_t block, class T>
void copy_panels(const PanelPixels<T> pixels, int64_t count) {
  constexpr int64_t lines_ahead = 32;
  const int64_t lines = ceil_div(pixels.groups * pixels.channels, line_elements<T>);
  const int64_t pixels_ahead = ceil_div(lines_ahead, lines);
  const int64_t read = (pixels.groups - 1) * pixels.group_pitch + round_up(pixels.channels, block);
  const T* pixel = pixels.from;
  for (int64_t i = 0; i < count; ++i, pixel += pixels.pitch) {
    const bool whole = pixels.end - pixel >= read;
    const int64_t ahead = pixels.read_on || i + pixels_ahead < count ? pixels_ahead * pixels.pitch : 0;
    const T* from = pixel;
    T* to = pixels.to + i * block;
    for (int64_t group = 0; group < pixels.groups; ++group, from += pixels.group_pitch)
      for (int64_t c = 0; c < pixels.channels; c += block, to += pixels.between) {
        __builtin_prefetch(from + c + ahead, 0, 2);
        if (whole)
          std::memcpy(to, from + c, block * sizeof(T));
        else
          std::copy(from + c, std::min(from + c + block, pixels.end), to);
      }
  }
}

}  // namespace pleat::ops::direct_weight
