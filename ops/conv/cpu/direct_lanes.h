// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/gather.h"
#include "pleat/ops/conv/nhwc.h"

/// What convolutions lane by lane share (direct_lanes.cpp, direct_lanes_weight.cpp, direct_groups.cpp): how
/// they are cut, the source spread out for lanes, and the packed weights.

namespace pleat::ops::direct_lanes {

using simd::lanes;
using simd::Vector;

inline constexpr int pixel_tile = 8;
/// Vectors of a block: as many as leave registers for the weights that pixels of a tile share.
inline constexpr int most_vectors = simd::registers == 32 ? 2 : 1;
/// Pixels of a piece that is read in place. Of many channels fewer are taken, that all of them stay in the
/// second-level cache.
inline constexpr int64_t most_pixels = 1024;
inline constexpr int64_t fewest_pixels = 64;
/// Bytes of weights that stay in the first-level cache beside the source.
inline constexpr int64_t weight_bytes = 16 << 10;

/// Where registers are so long, vectors of half the length serve channels that only these divide (24, 72):
/// none is computed twice, and none lies in two cache lines.
inline constexpr bool has_halves = simd::register_bytes == 64;
inline constexpr int most_half_vectors = 3;

/// Pixels and taps of a run for which it is worth loading a vector once for all that read it.
inline constexpr std::size_t least_slide = 4;
inline constexpr int64_t least_run = 3;

/// Whether groups have 2, 4 or 8 channels on both sides, so that each vector holds some whole ones.
template <class T>
bool vectors_hold_groups(const Gather& gather) {
  const int64_t group = gather.source_channels;
  return gather.groups > 1 && (group == 2 || group == 4 || group == 8) && group < lanes<T> &&
         group == gather.result_channels && gather.result_pitch() % lanes<T> == 0;
}

/// Whether a gather's taps and pixels along a line lie side by side.
inline bool slides(const GatherDim& line) {
  const auto taps = static_cast<int64_t>(line.taps.size());
  return line.source_step == 1 && line.reach() == taps && taps >= least_run;
}

/// How a gather is computed: its result's channels in blocks of some vectors. The last block begins
/// earlier where it would not be full, so that no vector is: its first channels are computed twice.
template <class T>
struct LanePlan {
  int64_t channels;  ///< of the result
  bool in_place;     ///< whether lanes read the source where it lies: depthwise
  bool whole_lines;  ///< whether all pixels of a line are listed with all taps, those on padding, too
  int64_t depth;     ///< channels of the source that a lane reads
  int64_t width;     ///< lanes of a vector
  int64_t block;     ///< channels of a block; the last may have fewer vectors
  int64_t step;      ///< from an element that a lane reads to the next in a run
  GatherPieces pieces;

  /// `may_halve`: whether vectors of half the length are as good as whole ones.
  LanePlan(const Gather& gather, int64_t pixels, bool may_halve, bool of_lines = false)
      : channels(gather.result_pitch()),
        in_place(gather.source_channels == 1 && gather.result_channels == 1),
        whole_lines(of_lines),
        depth(gather.source_channels),
        width(in_place && may_halve && is_halved(channels) ? half_lanes
              : channels >= lanes<T>                       ? lanes<T>
              : channels >= narrow_lanes                   ? narrow_lanes
                                                           : 1),
        block(!in_place                             ? width
              : has_halves && width == half_lanes   ? most_half_vectors * width
              : channels >= most_vectors * lanes<T> ? most_vectors * width
                                                    : width),
        step(in_place ? channels : block),
        pieces(in_place ? GatherPieces::in_place(gather, pixels, whole_lines)
                        : GatherPieces::for_results(gather, buffer_elements_wanted, depth * block)) {}

  /// Of vectors for fewer channels than a whole one has.
  static constexpr int64_t narrow_lanes = 16 / static_cast<int64_t>(sizeof(T));
  static constexpr int64_t half_lanes = lanes<T> / 2;
  static constexpr bool is_halved(int64_t channels) {
    return has_halves && channels > lanes<T> && channels % lanes<T> == half_lanes;
  }

  int64_t blocks() const { return ceil_div(channels, block); }
  int64_t vectors(int64_t i) const {
    return std::clamp<int64_t>(ceil_div(channels - i * block, width), 1, block / width);
  }
  int64_t first(int64_t i) const { return std::min(i * block, channels - vectors(i) * width); }
  /// Elements of the buffer; vectors that are spread over its last elements reach beyond them.
  int64_t buffer_elements() const { return in_place ? 0 : pieces.buffer_elements() + lanes<T>; }
};

/// Calls `f` with constants: bytes and number of the vectors of block i.
template <class T, class F>
void by_vectors(const LanePlan<T>& plan, int64_t i, const F& f) {
  constexpr int element = sizeof(T), whole = simd::register_bytes;
  if constexpr (has_halves)
    if (plan.width == LanePlan<T>::half_lanes) {
      const auto half = std::integral_constant<int, whole / 2>();
      if (plan.vectors(i) == most_half_vectors)
        return f(half, std::integral_constant<int, most_half_vectors>());
      if (plan.vectors(i) == 2) return f(half, std::integral_constant<int, 2>());
      return f(half, std::integral_constant<int, 1>());
    }
  if (plan.vectors(i) == most_vectors && plan.width == lanes<T>)
    f(std::integral_constant<int, whole>(), std::integral_constant<int, most_vectors>());
  else if (plan.width == lanes<T>)
    f(std::integral_constant<int, whole>(), std::integral_constant<int, 1>());
  else if (plan.width > 1)
    f(std::integral_constant<int, 16>(), std::integral_constant<int, 1>());
  else
    f(std::integral_constant<int, element>(), std::integral_constant<int, 1>());
}

/// Every lane has channel c of its group.
template <class T, int group, int c>
[[gnu::always_inline]] inline void spread_channel(const Vector<T>& x, Vector<T>& to) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    to = __builtin_shufflevector(x, x, (i / group * group + c)...);
  }
  (std::make_integer_sequence<int, static_cast<int>(lanes<T>)>());
}

/// Fills the buffer for the lanes from result channel `first` on. Every element is stored to a whole vector:
/// what it has too much, later ones overwrite.
template <class T, int bytes>
void spread_source(const Gather& gather, const LanePlan<T>& plan, int64_t piece, const T* source,
                   int64_t first, T* buffer) {
  using V = Vector<T, bytes>;
  // Lanes from `lane` on belong to one group, which reads the source from `channel` on.
  struct Share {
    int64_t lane;
    int64_t channel;
  };
  std::array<Share, static_cast<std::size_t>(lanes<T>)> shares;
  std::size_t count = 0;
  for (int64_t lane = 0; lane < plan.width; ++lane) {
    const int64_t channel = (first + lane) / gather.result_channels * gather.source_channels;
    if (count == 0 || shares[count - 1].channel != channel) shares[count++] = {lane, channel};
  }
  const auto copy = [&](int64_t to, int64_t from, int64_t pixels, int64_t step) {
    T* out = buffer + to * plan.depth * plan.block;
    const T* pixel = source + from * gather.source_pitch();
    for (int64_t i = 0; i < pixels; ++i, pixel += step * gather.source_pitch())
      for (int64_t c = 0; c < plan.depth; ++c, out += plan.width)
        for (std::size_t s = 0; s < count; ++s)
          simd::store<bytes>(out + shares[s].lane, pixel[shares[s].channel + c] - V{});
  };
  plan.pieces.visit(piece, copy, [](int64_t, int64_t) {});
}

/// The same for groups of as many channels on both sides, whole ones in a vector.
template <class T, int group, int c = 0>
[[gnu::always_inline]] inline void spread_group(const Vector<T>& x, T* to) {
  Vector<T> channel;
  spread_channel<T, group, c>(x, channel);
  simd::store(to + c * lanes<T>, channel);
  if constexpr (c + 1 < group) spread_group<T, group, c + 1>(x, to);
}
template <class T, int group>
void spread_groups(const Gather& gather, const LanePlan<T>& plan, int64_t piece, const T* source,
                   int64_t first, T* buffer) {
  const auto copy = [&](int64_t to, int64_t from, int64_t pixels, int64_t step) {
    T* out = buffer + to * group * lanes<T>;
    const T* pixel = source + from * gather.source_pitch() + first;
    for (int64_t i = 0; i < pixels; ++i, pixel += step * gather.source_pitch(), out += group * lanes<T>)
      spread_group<T, group>(simd::load(pixel), out);
  };
  plan.pieces.visit(piece, copy, [](int64_t, int64_t) {});
}

template <class T>
void fill_block(const Gather& gather, const LanePlan<T>& plan, int64_t piece, const T* source, int64_t i,
                T* buffer) {
  const int64_t group =
      gather.source_channels == gather.result_channels && plan.width == lanes<T> ? gather.source_channels : 0;
  constexpr int most = std::min<int>(4, lanes<T>);
  const auto fill = group == 2                ? spread_groups<T, 2>
                    : group == 4 && most == 4 ? spread_groups<T, most>
                    : gather.result_channels * static_cast<int64_t>(sizeof(T)) <= 16
                        ? spread_source<T, 16>
                        : spread_source<T, simd::register_bytes>;
  fill(gather, plan, piece, source, plan.first(i), buffer);
}

/// Distances from a tile's pixels and rows to those that will be read and written next.
struct TileAhead {
  int64_t source = 0;
  int64_t rows = 0;
};

/// Of the tile behind the one that begins with pixel p: the last of its taps, of `tap` elements, which no
/// tile before has read, and its rows.
inline TileAhead what_is_ahead(const GatherPixels& pixels, std::size_t p, const std::vector<GatherRun>& runs,
                               int64_t tap) {
  if (p + pixel_tile >= pixels.bases.size() || runs.empty()) return {};
  return {pixels.bases[p + pixel_tile] - pixels.bases[p] + runs.back().offset + runs.back().length - tap,
          pixels.rows[p + pixel_tile] - pixels.rows[p]};
}

/// The next pixels to be computed together.
struct Tile {
  std::size_t pixels;
  bool slide;  ///< whether they lie side by side, as taps of a run do
};

/// How many of a line's pixels are looked at to cut it into tiles of about equal size.
inline constexpr std::size_t pixels_looked_at = 4 * pixel_tile;

/// Of `count` pixels with the same taps, of `tap` elements each.
inline Tile next_tile(const int64_t* bases, std::size_t count, const std::vector<GatherRun>& runs,
                      int64_t tap, std::size_t most = pixel_tile) {
  if (!runs.empty() && runs.front().length >= least_run * tap) {
    std::size_t line = 1;
    count = std::min(count, pixels_looked_at);
    while (line < count && bases[line] - bases[line - 1] == tap) ++line;
    const std::size_t tiles = (line + most - 1) / most;
    if (line >= least_slide) return {(line + tiles - 1) / tiles, true};
  }
  return {std::min(most, count), false};
}

/// Weights as [taps in the gather's order][channel of a group's source][result channels], of so many result
/// channels after those of the ones before.
template <class T>
std::shared_ptr<std::byte> pack_lanes(const Gather& gather, const GatherWeights<T>& weights, int64_t width) {
  const int64_t elements = gather.depth() * gather.result_pitch();
  const auto taps = static_cast<int64_t>(weights.taps.size());
  return weights.packed(elements, [&](T* all) {
    // Some groups at a time, whose weights stay in the first-level cache for all taps.
    parallel_for(
        0, gather.groups, std::max<int64_t>(weight_bytes / (gather.depth() * gather.result_channels * 8), 1),
        [&](int64_t begin, int64_t end) {
          for (int64_t tap = 0; tap < taps; ++tap)
            for (int64_t c = 0; c < gather.source_channels; ++c) {
              const T* from = weights.data + weights.taps[static_cast<std::size_t>(tap)] * weights.tap +
                              c * weights.source;
              T* const row = all + (tap * gather.source_channels + c) * width;
              if (gather.result_channels == 1) {  // all in one row
                PLEAT_INDEPENDENT_ITERATIONS
                for (int64_t g = begin; g < end; ++g) row[g] = from[g * weights.group];
                continue;
              }
              for (int64_t g = begin; g < end; ++g) {
                const int64_t first = g * gather.result_channels;
                T* const to = row + first / width * width * gather.depth() + first % width;
                for (int64_t k = 0; k < gather.result_channels; ++k)
                  to[k] = from[g * weights.group + k * weights.result];
              }
            }
        });
  });
}

}  // namespace pleat::ops::direct_lanes
