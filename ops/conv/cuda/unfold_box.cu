#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "pleat/core/base/format.h"
#include "pleat/ops/conv/cuda/image_tiles.h"

/// unfold: a block reads a part of the images into shared memory once, and zeros for the padding, and writes
/// the windows that lie in it, neighbours by neighbouring threads.

namespace pleat::ops {
namespace {

using namespace image_tiles;

template <class T>
struct UnfoldTiles : ImageTiles<T> {
  using Base = ImageTiles<T>;
  using Base::along, Base::by_pixels, Base::channel_step, Base::flipped, Base::pixel_number, Base::size,
      Base::tile;
  using typename Base::Place;
  Divider<uint32_t> write_lanes, group_channels;
  uint32_t write_places, offsets;
  int64_t line_step;  ///< of columns, from a line of threads to the next
  ColumnSteps to;
  T* columns;

  UnfoldTiles(const TilePlan& plan, const T* from, int64_t channels, const ColumnSteps& steps, bool flips,
              T* columns_)
      : Base(plan, from, flips),
        group_channels(channels),
        offsets(static_cast<uint32_t>(by_pixels ? plan.taps() : plan.pixels())),
        line_step(plan.wish.line),
        to(steps),
        columns(columns_) {
    write_places = static_cast<uint32_t>(by_pixels ? plan.pixels() : plan.taps());
    write_lanes = Divider<uint32_t>(std::min<int64_t>(write_places, block_threads));
  }

  /// Where an output or a tap of the tile is in shared memory and in columns.
  struct Offsets {
    uint32_t shared;
    int64_t column;   ///< among offsets: in lines
    uint32_t number;  ///< of those of the tile
    bool is_there;
  };

  __device__ void operator()(int64_t number, const Block& block) const {
    const SharedArray<T, shared_bytes / sizeof(T)> shared;
    const OffsetTable table;
    const auto thread = static_cast<uint32_t>(block.thread());
    const Place at = this->place(number, thread);
    this->template load<T>(at, thread, shared, table, [](const T* from) { return *from; });
    for (uint32_t i = thread; i < offsets; i += block_threads) {
      const Offsets each = by_pixels ? offsets_of_tap(at, i) : offsets_of_pixel(at, i);
      if (each.is_there)
        table.write(static_cast<int>(each.number),
                    {{each.shared, static_cast<uint32_t>(each.column * line_step)}});
    }
    __syncthreads();
    uint32_t lane = thread;
    const uint32_t line = write_lanes.divide(lane);
    const uint32_t lines = block_threads / write_lanes.divisor();
    const uint32_t count = by_pixels ? at.count[channel] * at.count[tap_d] * at.count[tap_h] * at.count[tap_w]
                                     : Base::pixels_of(at);
    if (line < lines)
      for (; lane < write_places; lane += write_lanes.divisor()) {
        const Offsets own = by_pixels ? offsets_of_pixel(at, lane) : offsets_of_tap(at, lane);
        if (!own.is_there) continue;
        T* const target = columns + own.column + first_line(at) * line_step;
        Base::for_each_line(
            line, count, lines, table,
            [&](const auto& other) { return shared.read(static_cast<int>(own.shared + other.lane[0])); },
            [&](const auto& other, const T& value) { target[other.lane[1]] = value; });
      }
  }

 private:
  __device__ Offsets offsets_of_pixel(const Place& at, uint32_t i) const {
    const auto p = this->tile_pixel(at, i);
    Offsets result{p.shared, 0, p.number, p.is_there};
    if (by_pixels)
      result.column =
          int64_t{at.first[image] + p.n} * to.image +
          pixel_number(at.first[out_d] + p.d, at.first[out_h] + p.h, at.first[out_w] + p.w) * to.pixel;
    else
      result.column = p.n * pixel_number(size[out_d], 0, 0) + pixel_number(p.d, p.h, p.w);
    return result;
  }
  __device__ Offsets offsets_of_tap(const Place& at, uint32_t i) const {
    uint32_t c = 0;
    if (!by_pixels) {
      c = i;
      i = tile[channel].divide(c);
    }
    uint32_t taps[3];
    PLEAT_UNROLL
    for (std::size_t j = 3; j-- > 0;) {
      taps[j] = i;
      i = tile[tap_d + j].divide(taps[j]);
    }
    if (by_pixels) c = i;
    Offsets result;
    result.shared = c * channel_step;
    result.number = c;
    result.is_there = c < at.count[channel];
    PLEAT_UNROLL
    for (std::size_t j = 0; j < 3; ++j) {
      const uint32_t count = at.count[tap_d + j];
      result.is_there = result.is_there && taps[j] < count;
      result.number = result.number * count + taps[j];
      result.shared += this->place_of(j, (flipped ? count - 1 - taps[j] : taps[j]) * along[j].tap_step);
    }
    if (by_pixels) {
      result.column = c * tap_number(size[tap_d], 0, 0) + tap_number(taps[0], taps[1], taps[2]);
    } else {
      uint32_t own = at.first[channel] + c;
      const uint32_t group = group_channels.divide(own);
      result.column =
          group * to.group + own * to.channel +
          tap_number(at.first[tap_d] + taps[0], at.first[tap_h] + taps[1], at.first[tap_w] + taps[2]) *
              to.tap;
    }
    return result;
  }
  /// The line of columns that is the tile's first.
  __device__ int64_t first_line(const Place& at) const {
    if (by_pixels)
      return at.first[channel] * tap_number(size[tap_d], 0, 0) +
             tap_number(at.first[tap_d], at.first[tap_h], at.first[tap_w]);
    return at.first[image] * pixel_number(size[out_d], 0, 0) +
           pixel_number(at.first[out_d], at.first[out_h], at.first[out_w]);
  }
  __device__ int64_t tap_number(uint32_t d, uint32_t h, uint32_t w) const {
    return (int64_t{d} * size[tap_h] + h) * size[tap_w] + w;
  }
};

/// Of elements that are moved as T, `width` of them at once.
template <class T>
void unfold_tiles(const char* op, const ConvProblem& p, const PixelBox& box, const Tensor& x, int64_t width,
                  std::byte* columns, ColumnSteps steps, bool flipped) {
  // One channel and tap of a group: its pixels are neighbours.
  if (p.group_in() == width && p.taps() == 1 && steps.pixel == 1) steps.channel = steps.tap = steps.group;
  const Strides& from = x.strides();
  const TilePlan plan(p, box,
                      {.channels = p.in_channels / width,
                       .bytes = sizeof(T),
                       .x_image = from[0] / width,
                       .x_channel = width > 1 ? 1 : from[1],
                       .x_step = {from[2] / width, from[3] / width, from[4] / width},
                       .loads_channels = from[1] == 1,
                       .by_pixels = steps.pixel == 1,
                       .line = steps.pixel == 1 ? steps.tap : steps.pixel});
  launch_blocks(op, p.device, plan.tiles(),
                UnfoldTiles<T>(plan, reinterpret_cast<const T*>(x.raw()) + box.first[0] * (from[0] / width),
                               p.group_in() / width, steps, flipped, reinterpret_cast<T*>(columns)));
}

}  // namespace

void unfold_box(const char* op, const ConvProblem& p, const PixelBox& box, const Tensor& x,
                std::byte* columns, const ColumnSteps& steps, bool flipped) {
  if (box.count() * p.in_channels == 0) return;
  for (const int64_t size : {box.size[0], box.pixels(), p.in_channels, p.taps()})
    check<ShapeError>(size < int64_t{1} << 31, "{}: windows of {}: a GPU takes sizes below {} here", op, size,
                      int64_t{1} << 31);
  const int64_t bytes = size_of(x.dtype()), width = 16 / bytes;
  const auto is_multiple = [&](int64_t step) { return step % width == 0; };
  bool wide = steps.channel == 1 && x.strides()[1] == 1 && is_multiple(p.group_in());
  for (const std::size_t d : {0, 2, 3, 4}) wide = wide && (x.shape()[d] == 1 || is_multiple(x.strides()[d]));
  for (const int64_t step : {steps.group, steps.tap, steps.pixel}) wide = wide && is_multiple(step);
  for (const std::byte* const data :
       {static_cast<const std::byte*>(x.raw()), static_cast<const std::byte*>(columns)})
    wide = wide && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  if (wide)
    return unfold_tiles<Vector<uint64_t, 2>>(
        op, p, box, x, width, columns,
        {steps.image / width, steps.group / width, 1, steps.tap / width, steps.pixel / width}, flipped);
  if (bytes == 2) return unfold_tiles<uint16_t>(op, p, box, x, 1, columns, steps, flipped);
  if (bytes == 4) return unfold_tiles<uint32_t>(op, p, box, x, 1, columns, steps, flipped);
  unfold_tiles<uint64_t>(op, p, box, x, 1, columns, steps, flipped);
}

}  // namespace pleat::ops
