// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/ops/conv/cuda/windows.h"

/// Parts of images in shared memory, that windows are read from. For files with kernels only.

namespace pleat::ops::image_tiles {

enum Dim : std::size_t { channel, image, out_d, out_h, out_w, tap_d, tap_h, tap_w, dims };

constexpr int64_t shared_bytes = 24576;
constexpr int64_t most_offsets = 1024;

/// One spatial dimension. A tile has every `unit`th element of the images, which are all that it needs; where
/// neighbouring threads write neighbouring outputs, those that these read at the same tap are neighbours.
struct Along {
  int64_t start, stride, dilation;         ///< input element of the first output and tap; steps of these
  int64_t input, unit, x_step, unit_step;  ///< steps in x
  Divider<uint32_t> inside;                ///< elements of the largest tile, without padding
  Divider<uint32_t> turns;                 ///< elements of each of so many stand side by side
  uint32_t out_step, tap_step;             ///< from an output or a tap to the next, in units
  uint32_t run, step, pixel_step;  ///< in shared memory: elements of a turn; steps of elements and outputs
};

/// What is to be cut into tiles.
struct TileWish {
  int64_t channels, bytes;  ///< elements, which may be several channels each
  int64_t x_image, x_channel;
  std::array<int64_t, 3> x_step;
  bool loads_channels;  ///< neighbouring threads read neighbouring channels; else pixels
  bool by_pixels;       ///< neighbouring threads write neighbouring pixels; else channels and taps
  int64_t line = 0;     ///< of columns, from a line of threads to the next; 0: results are written
  /// Bytes of what is written, or of products, that pay for what a block begins with.
  int64_t least_work = 65536;
  /// If results are written: those of an output in d and h, from an image or an output in each dimension to
  /// the next, neighbouring channels that fill a sector of memory, and what a tile may have.
  int64_t phases = 1, to_image = 0;
  std::array<int64_t, 3> to_step{};
  int64_t together = 1, most_channels = 0, most_rows = 0, most_groups = 0, most_results = 0;
  int64_t shared = shared_bytes;  ///< bytes of a tile
};

constexpr int64_t group_rows = 4;  ///< neighbouring lines of results that a thread computes at once

/// The tiles of a box: sizes, and where their elements lie in shared memory.
struct TilePlan {
  std::array<int64_t, dims> size, tile;
  std::array<Along, 3> along{};
  int64_t channel_step = 0, image_step = 0, elements = 0;
  int64_t most_work;  ///< elements of columns in a tile
  TileWish wish;

  TilePlan(const ConvProblem& p, const PixelBox& box, const TileWish& wish_)
      : size{wish_.channels, box.size[0], box.size[1], box.size[2],
             box.size[3],    p.kernel[0], p.kernel[1], p.kernel[2]},
        wish(wish_) {
    const int64_t bytes = wish.bytes;
    const bool by_pixels = wish.by_pixels;
    tile.fill(1);
    for (std::size_t i = 0; i < 3; ++i) {
      Along& a = along[i];
      // One output has no step to the next, one tap none either: what was asked for may be any number.
      a.stride = p.output[i] == 1 ? 1 : p.stride[i];
      a.dilation = p.kernel[i] == 1 ? 1 : p.dilation[i];
      a.start = box.first[1 + i] * a.stride - p.padding_low[i];
      a.input = p.input[i];
      a.x_step = wish.x_step[i];
    }
    constexpr int64_t enough = 256;  // tiles: what keeps a large GPU busy
    int64_t work = 1;
    for (const int64_t each : size) work *= each;
    most_work = std::clamp(work / enough, wish.least_work / bytes, 4 * wish.least_work / bytes);
    for (const Dim dim : {tap_w, tap_h, tap_d}) grow(dim, size[dim]);
    if (wish.loads_channels) grow(channel, of_results() ? wish.together : std::max<int64_t>(1, 64 / bytes));
    grow(out_w, of_results() && wish.loads_channels ? 32 : by_pixels ? 128 : 16);
    grow(out_h, 8);
    grow(out_d, 2);
    if (!by_pixels) grow(channel, size[channel]);
    for (const Dim dim : {out_w, out_h, out_d}) grow(dim, size[dim]);
    const bool whole_images = product(out_d, out_w) == box.pixels();
    if (whole_images) grow(image, by_pixels ? ceil_div(int64_t{block_threads}, box.pixels()) : size[image]);
    grow(channel, size[channel]);
    if (whole_images) grow(image, size[image]);
    fits();
  }

  int64_t tiles() const {
    int64_t result = 1;
    for (std::size_t i = 0; i < dims; ++i) result *= ceil_div(size[i], tile[i]);
    return result;
  }
  int64_t product(Dim first, Dim last) const {
    int64_t result = 1;
    for (std::size_t d = first; d <= last; ++d) result *= tile[d];
    return result;
  }
  /// Lines of the images, along w.
  int64_t rows() const {
    return int64_t{along[0].inside.divisor()} * along[1].inside.divisor() * tile[image] *
           (wish.loads_channels ? 1 : tile[channel]);
  }
  bool of_results() const { return wish.line == 0; }
  /// Of up to `group_rows` lines of results.
  int64_t groups() const {
    return tile[image] * tile[out_d] * ceil_div(tile[out_h], group_rows) * wish.phases;
  }
  /// Results of a column of a tile, and an odd number of them that is no less.
  int64_t column() const { return product(image, out_h) | 1; }
  int64_t pixels() const { return product(image, out_w); }
  int64_t taps() const { return tile[channel] * product(tap_d, tap_w); }

  /// A step of channels that is no less, by which neighbouring threads meet different banks.
  int64_t apart(int64_t least) const {
    const int64_t banks = 128 / wish.bytes;
    return round_up(least, banks) + std::max<int64_t>(1, banks / tile[channel]);
  }

 private:
  /// Makes the tile as large in a dimension as fits, up to `most`.
  void grow(Dim dim, int64_t most) {
    const int64_t before = tile[dim];
    for (int64_t parts = ceil_div(size[dim], std::clamp<int64_t>(most, 1, size[dim])); parts < size[dim];
         parts += ceil_div(parts, int64_t{2})) {
      tile[dim] = ceil_div(size[dim], parts);
      if (dim == out_w && wish.by_pixels)
        tile[dim] = std::min(size[dim], round_up(tile[dim], std::max<int64_t>(1, 32 / wish.bytes)));
      if (dim == out_h && of_results()) tile[dim] = std::min(size[dim], round_up(tile[dim], group_rows));
      if (tile[dim] <= before) break;
      if (fits()) return;
    }
    tile[dim] = before;
  }

  /// A step that is no less than `least` and by which elements are followed by those that are `span` of them
  /// later, in the order of memory's banks.
  int64_t padded(int64_t least, int64_t span, bool is_one) const {
    if (is_one || least == span) return least;
    const int64_t banks = 128 / wish.bytes, word = std::max<int64_t>(1, 4 / wish.bytes);
    if (least <= word * span && word > 1) return round_up(least, word);
    // Odd multiples of a power of two meet no bank twice either.
    const int64_t step = round_up(span, word);
    const int64_t period =
        std::has_single_bit(static_cast<uint64_t>(step)) ? std::min(2 * step, banks) : banks;
    return least + ((step - least) % period + period) % period;
  }
  int64_t reach_of_x() const {
    int64_t last = (tile[channel] - 1) * wish.x_channel + (tile[image] - 1) * wish.x_image;
    for (const Along& a : along) last += (a.inside.divisor() - 1) * a.unit * a.x_step;
    return last;
  }
  /// How many elements what is written reaches over, but for the lanes.
  int64_t reach() const {
    const auto last = [&](std::size_t outer, std::size_t inner) {
      int64_t number = tile[outer] - 1;
      for (std::size_t i = inner; i < inner + 3; ++i) number = number * size[i] + tile[i] - 1;
      return number;
    };
    if (wish.line != 0) return wish.line * (wish.by_pixels ? last(channel, tap_d) : last(image, out_d));
    int64_t results = tile[image] * wish.to_image;
    for (std::size_t i = 0; i < 3; ++i) results += tile[out_d + i] * wish.to_step[i];
    return results;
  }

  /// Lays the tile out; whether there is memory for it.
  bool fits() {
    std::array<int64_t, 3> extent;
    for (std::size_t i = 0; i < 3; ++i) {
      Along& a = along[i];
      const bool outs = tile[out_d + i] > 1, taps = tile[tap_d + i] > 1;
      a.unit = std::max<int64_t>(1, std::gcd(outs ? a.stride : 0, taps ? a.dilation : 0));
      const int64_t out_step = outs ? a.stride / a.unit : 1, tap_step = taps ? a.dilation / a.unit : 0;
      extent[i] = (tile[out_d + i] - 1) * out_step + (tile[tap_d + i] - 1) * tap_step + 1;
      if (extent[i] > wish.shared) return false;
      a.inside = Divider<uint32_t>(std::min(extent[i], ceil_div(a.input, a.unit)));
      const int64_t turns = wish.by_pixels ? out_step : 1;
      a.turns = Divider<uint32_t>(turns);
      a.out_step = static_cast<uint32_t>(out_step);
      a.tap_step = static_cast<uint32_t>(tap_step);
      a.run = static_cast<uint32_t>(ceil_div(extent[i], turns));
      if (of_results() && turns > 1) a.run |= 1;  // neighbours of different turns: other banks, too
      extent[i] = a.run * turns;
    }
    int64_t step = wish.by_pixels ? 1 : tile[channel];
    int64_t span = step;
    if (of_results()) {
      // Lines are neighbours, and columns lie an odd number of elements apart: no bank is met twice.
      step = extent[1] | 1;
      along[1].step = along[1].pixel_step = 1;
      for (const std::size_t i : {std::size_t{2}, std::size_t{0}}) {
        along[i].step = along[i].pixel_step = static_cast<uint32_t>(step);
        step *= extent[i];
      }
      span = step;
    }
    for (std::size_t i = of_results() ? 0 : 3; i-- > 0;) {
      const int64_t count = tile[(wish.by_pixels ? out_d : tap_d) + i];
      // The taps of a line and those of the next pixel are to lie in other banks than the next line's.
      if (!wish.by_pixels && i == 1) span = std::max(span, 128 / wish.bytes / count);
      Along& a = along[i];
      a.step = static_cast<uint32_t>(step = padded(step, span, extent[i] == 1));
      a.pixel_step = wish.by_pixels ? a.step : a.step * a.out_step;
      if (count > 1) span = step * count;
      step *= extent[i];
    }
    image_step = wish.by_pixels ? padded(step, span, tile[image] == 1) : step;
    channel_step = wish.by_pixels ? image_step * tile[image] : 1;
    if (of_results() || (wish.by_pixels && wish.loads_channels)) channel_step = apart(channel_step);
    elements = wish.by_pixels ? channel_step * tile[channel] : image_step * tile[image];
    constexpr int64_t small = int64_t{1} << 32;
    const bool has_tables = of_results()
                                ? tile[channel] <= wish.most_channels && rows() <= wish.most_rows &&
                                      groups() <= wish.most_groups &&
                                      apart(tile[out_w] * column()) * tile[channel] <= wish.most_results
                                : std::max(rows(), wish.by_pixels ? taps() : pixels()) <= most_offsets;
    return elements * wish.bytes <= wish.shared && has_tables && pixels() * taps() <= most_work &&
           reach() < small && reach_of_x() < small;
  }
};

using OffsetTable = SharedArray<Vector<uint32_t, 2>, most_offsets>;

/// The tiles of images of type T, as a kernel sees them.
template <class T>
struct ImageTiles {
  std::array<Divider<uint32_t>, dims> tile, tiles;
  std::array<uint32_t, dims> size;
  std::array<Along, 3> along;
  Divider<uint32_t> load_lanes;
  uint32_t load_places, rows;
  uint32_t channel_step, image_step, elements;  ///< of shared memory
  bool by_pixels, loads_channels, flipped;
  int64_t x_image, x_channel;
  const T* x;

  ImageTiles(const TilePlan& plan, const T* x_, bool flipped_)
      : along(plan.along),
        rows(static_cast<uint32_t>(plan.rows())),
        channel_step(static_cast<uint32_t>(plan.channel_step)),
        image_step(static_cast<uint32_t>(plan.image_step)),
        elements(static_cast<uint32_t>(plan.elements)),
        by_pixels(plan.wish.by_pixels),
        loads_channels(plan.wish.loads_channels),
        flipped(flipped_),
        x_image(plan.wish.x_image),
        x_channel(plan.wish.x_channel),
        x(x_) {
    for (std::size_t i = 0; i < dims; ++i) {
      tile[i] = Divider<uint32_t>(plan.tile[i]);
      tiles[i] = Divider<uint32_t>(ceil_div(plan.size[i], plan.tile[i]));
      size[i] = static_cast<uint32_t>(plan.size[i]);
    }
    for (Along& a : along) a.unit_step = a.unit * a.x_step;
    load_places = along[2].inside.divisor() * (loads_channels ? tile[channel].divisor() : 1);
    load_lanes = Divider<uint32_t>(std::min<int64_t>(load_places, block_threads));
  }

  /// The tile of a block, and of the input that it needs: how much of each dimension lies in the padding
  /// before, how much does not, and where that begins.
  struct Place {
    int64_t source;
    uint32_t first[dims], count[dims];
    uint32_t low[3], inside[3];
    uint32_t is_padded, lines;  ///< lines: that are not padding
  };
  /// Found by a warp for all threads, which meet here.
  __device__ Place place(int64_t number, uint32_t thread) const {
    const SharedArray<Place, 1> found;
    if (thread < 32) {
      const Place at = find(number);
      if (thread == 0) found.write(0, at);
    }
    __syncthreads();
    return found.read(0);
  }
  __device__ int64_t pixel_number(uint32_t d, uint32_t h, uint32_t w) const {
    return (int64_t{d} * size[out_h] + h) * size[out_w] + w;
  }
  /// Where an output of the tile has its first tap, and which it is.
  struct TilePixel {
    uint32_t n, d, h, w, shared;
    uint32_t number;  ///< of those of the tile
    bool is_there;
  };
  __device__ TilePixel tile_pixel(const Place& at, uint32_t i) const {
    TilePixel p;
    p.w = i;
    p.h = tile[out_w].divide(p.w);
    p.d = tile[out_h].divide(p.h);
    p.n = tile[out_d].divide(p.d);
    p.shared =
        p.n * image_step + p.d * along[0].pixel_step + p.h * along[1].pixel_step + p.w * along[2].pixel_step;
    p.number = ((p.n * at.count[out_d] + p.d) * at.count[out_h] + p.h) * at.count[out_w] + p.w;
    p.is_there =
        p.n < at.count[image] && p.d < at.count[out_d] && p.h < at.count[out_h] && p.w < at.count[out_w];
    return p;
  }
  __device__ static uint32_t pixels_of(const Place& at) {
    return at.count[image] * at.count[out_d] * at.count[out_h] * at.count[out_w];
  }

  __device__ static int64_t units(const Along& a, int64_t n) { return a.unit == 1 ? n : n / a.unit; }

  __device__ Place find(int64_t number) const {
    Place at;
    auto rest = static_cast<uint32_t>(number);
    PLEAT_UNROLL
    for (std::size_t i = dims; i-- > 0;) {
      uint32_t place = rest;
      rest = tiles[i].divide(place);
      at.first[i] = place * tile[i].divisor();
      at.count[i] = std::min(tile[i].divisor(), size[i] - at.first[i]);
    }
    at.is_padded = 0;
    at.source = at.first[channel] * x_channel + at.first[image] * x_image;
    PLEAT_UNROLL
    for (std::size_t i = 0; i < 3; ++i) {
      const Along& a = along[i];
      const uint32_t outs = at.count[out_d + i], taps = at.count[tap_d + i];
      const uint32_t first_tap = flipped ? size[tap_d + i] - at.first[tap_d + i] - taps : at.first[tap_d + i];
      const int64_t start = a.start + at.first[out_d + i] * a.stride + first_tap * a.dilation;
      const int64_t extent = (outs - 1) * a.out_step + (taps - 1) * a.tap_step + 1;
      const int64_t before = start < 0 ? units(a, a.unit - 1 - start) : 0;
      const int64_t end = start < a.input ? std::min(units(a, a.input - 1 - start) + 1, extent) : 0;
      at.low[i] = static_cast<uint32_t>(std::min(before, extent));
      at.inside[i] = static_cast<uint32_t>(std::max<int64_t>(end - at.low[i], 0));
      if (at.inside[i] < extent) at.is_padded = 1;
      at.source += start * a.x_step + at.low[i] * a.unit_step;
    }
    at.lines = at.inside[0] * at.inside[1] * at.count[image] * (loads_channels ? 1 : at.count[channel]);
    return at;
  }

  /// All that the tile needs, as get(address); zeros for the padding. `table` may be used afterwards.
  template <class Element, class Shared, class Table, class Get>
  __device__ void load(const Place& at, uint32_t thread, const Shared& shared, const Table& table,
                       const Get& get) const {
    const uint32_t* const low = at.low;
    const uint32_t* const inside = at.inside;
    const T* const source = x + at.source;
    for (uint32_t i = thread; i < rows; i += block_threads) {
      uint32_t h = i;
      uint32_t d = along[1].inside.divide(h);
      uint32_t n = along[0].inside.divide(d);
      const uint32_t c = tile[image].divide(n);
      if (h < inside[1] && d < inside[0] && n < at.count[image] && c < at.count[channel])
        table.write(static_cast<int>(((c * at.count[image] + n) * inside[0] + d) * inside[1] + h),
                    {{c * channel_step + n * image_step + place_of(0, low[0] + d) + place_of(1, low[1] + h),
                      static_cast<uint32_t>(c * x_channel + n * x_image + d * along[0].unit_step +
                                            h * along[1].unit_step)}});
    }
    if (at.is_padded != 0)
      for (uint32_t i = thread; i < elements; i += block_threads)
        shared.write(static_cast<int>(i), Element{});
    __syncthreads();
    uint32_t lane = thread;
    const uint32_t line = load_lanes.divide(lane);
    const uint32_t lines = block_threads / load_lanes.divisor();
    if (line < lines)
      for (; lane < load_places; lane += load_lanes.divisor()) {
        uint32_t w = lane, c = 0;
        if (loads_channels) {
          c = w;
          w = tile[channel].divide(c);
        }
        if (w >= inside[2] || c >= at.count[channel]) continue;
        const T* const from = source + c * x_channel + w * along[2].unit_step;
        const uint32_t to_place = c * channel_step + place_of(2, low[2] + w);
        for_each_line(
            line, at.lines, lines, table, [&](const auto& row) { return get(from + row.lane[1]); },
            [&](const auto& row, const auto& value) {
              shared.write(static_cast<int>(to_place + row.lane[0]), value);
            });
      }
    __syncthreads();
  }

  /// Where an element of a dimension is in shared memory.
  __device__ uint32_t place_of(std::size_t i, uint32_t place) const {
    const uint32_t run = along[i].turns.divide(place);
    return (place * along[i].run + run) * along[i].step;
  }

  /// Of the lines first, first + step, ...: put(line, get(line)), of some at once.
  template <class Table, class Get, class Put>
  __device__ static void for_each_line(uint32_t first, uint32_t count, uint32_t step, const Table& table,
                                       const Get& get, const Put& put) {
    constexpr uint32_t at_once = 4;
    uint32_t i = first;
    for (; i + (at_once - 1) * step < count; i += at_once * step) {
      decltype(get(table.read(0))) value[at_once];
      Vector<uint32_t, 2> line[at_once];
      PLEAT_UNROLL
      for (uint32_t j = 0; j < at_once; ++j) {
        line[j] = table.read(static_cast<int>(i + j * step));
        value[j] = get(line[j]);
      }
      PLEAT_UNROLL
      for (uint32_t j = 0; j < at_once; ++j) put(line[j], value[j]);
    }
    for (; i < count; i += step) {
      const auto line = table.read(static_cast<int>(i));
      put(line, get(line));
    }
  }
};

}  // namespace pleat::ops::image_tiles
