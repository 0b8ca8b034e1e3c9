// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/direct_weight_plan.h"

/// The tile of the gradient of the weight (direct_weight.cpp): its sums in registers, and what it fetches
/// meanwhile; and the copies into the panels that it reads.

namespace pleat::ops::direct_weight {

using simd::Vector;

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
