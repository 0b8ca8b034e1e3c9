// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/elementwise_kernel.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/image_tiles.h"
#include "pleat/ops/conv/cuda/pixels.h"

/// Depthwise convolutions whose inputs are tiles in shared memory.

namespace pleat::ops::depthwise {

using namespace cuda_conv;
using namespace image_tiles;

/// Bytes of the weights of a tile, or of its elements of dy, and its taps.
inline constexpr int64_t result_bytes = 8192;
inline constexpr int64_t most_taps = 1024;

/// Steps of [image, channel, pixel] in dense images.
struct DenseSteps {
  int64_t image, channel, pixel;

  DenseSteps(MemoryFormat format, int64_t channels, int64_t pixels)
      : image(channels * pixels),
        channel(format == MemoryFormat::channels_last ? 1 : pixels),
        pixel(format == MemoryFormat::channels_last ? channels : 1) {}
};

/// Neighbouring channels of an element of shared memory.
inline constexpr std::size_t wide = 4;

/// x in shared memory, `width` neighbouring channels an element, and where the results of a tile lie.
template <class T, std::size_t width>
struct DepthwiseBase : ImageTiles<T> {
  using Tiles = ImageTiles<T>;
  using Tiles::by_pixels, Tiles::tile;
  using typename Tiles::Place;
  using Element = Vector<Sum<T>, width>;
  using Tile = SharedArray<Element, shared_bytes / sizeof(Element)>;
  using Results = SharedArray<Element, result_bytes / sizeof(Element)>;
  using TapOffsets = SharedArray<uint32_t, most_taps>;
  uint32_t taps, multiplier;  ///< multiplier: outputs of a channel
  DenseSteps from, to;

  DepthwiseBase(const TilePlan& plan, const ConvProblem& p, const T* x_, bool flips)
      : Tiles(plan, x_, flips),
        taps(static_cast<uint32_t>(p.taps())),
        multiplier(static_cast<uint32_t>(p.group_out())),
        from(p.format, p.in_channels, p.input_pixels()),
        to(p.format, p.out_channels, p.output_pixels()) {}

  __device__ void load_x(const Place& at, uint32_t thread, const Tile& shared,
                         const OffsetTable& table) const {
    this->template load<Element>(at, thread, shared, table, [this](const T* first) {
      return sums_of(first, from.channel == 1, from.channel);
    });
  }
  /// table[pixel of the tile] = {its first tap in shared memory, its result from the tile's first on}.
  __device__ void find_pixels(const Place& at, uint32_t thread, const OffsetTable& table) const {
    const uint32_t places =
        tile[image].divisor() * tile[out_d].divisor() * tile[out_h].divisor() * tile[out_w].divisor();
    for (uint32_t i = thread; i < places; i += block_threads) {
      const auto p = this->tile_pixel(at, i);
      if (p.is_there)
        table.write(static_cast<int>(p.number),
                    {{p.shared,
                      static_cast<uint32_t>(p.n * to.image + this->pixel_number(p.d, p.h, p.w) * to.pixel)}});
    }
  }
  __device__ void find_taps(uint32_t thread, const TapOffsets& offsets) const {
    for (uint32_t i = thread; i < taps; i += block_threads) {
      uint32_t s = i;
      uint32_t r = tile[tap_w].divide(s);
      const uint32_t t = tile[tap_h].divide(r);
      offsets.write(static_cast<int>(i), this->place_of(0, t * this->along[0].tap_step) +
                                             this->place_of(1, r * this->along[1].tap_step) +
                                             this->place_of(2, s * this->along[2].tap_step));
    }
  }
  __device__ int64_t result_channel(uint32_t c, std::size_t j, uint32_t m) const {
    return (int64_t{c} * static_cast<int64_t>(width) + static_cast<int64_t>(j)) * multiplier + m;
  }
  /// Of the tile's first pixel.
  __device__ int64_t result_place(const Place& at, uint32_t c, uint32_t m) const {
    return at.first[image] * to.image +
           this->pixel_number(at.first[out_d], at.first[out_h], at.first[out_w]) * to.pixel +
           result_channel(at.first[channel] + c, 0, m) * to.channel;
  }
  __device__ static Element sums_of(const T* first, bool are_neighbours, int64_t step) {
    Vector<T, width> values;
    if (are_neighbours)
      values = *reinterpret_cast<const Vector<T, width>*>(first);
    else
      for (std::size_t j = 0; j < width; ++j) values.lane[j] = first[static_cast<int64_t>(j) * step];
    Element result;
    for (std::size_t j = 0; j < width; ++j) result.lane[j] = convert<Sum<T>>(values.lane[j]);
    return result;
  }
};

/// Results from x in shared memory, `width` neighbouring channels a thread and some pixels at a time.
template <class T, std::size_t width>
struct DepthwiseTiles : DepthwiseBase<T, width> {
  using Base = DepthwiseBase<T, width>;
  using Base::by_pixels, Base::channel_step, Base::flipped, Base::multiplier, Base::taps, Base::tile,
      Base::to;
  using typename Base::Element, typename Base::Tile, typename Base::Results, typename Base::TapOffsets;
  Divider<uint32_t> lanes;
  const T* w;
  const T* bias;  ///< null: none
  T* y;

  DepthwiseTiles(const TilePlan& plan, const ConvProblem& p, const T* x_, const T* w_, const T* bias_, T* y_,
                 bool flips)
      : Base(plan, p, x_, flips),
        lanes(shared_out(by_pixels ? plan.pixels() : plan.tile[channel])),
        w(w_),
        bias(bias_),
        y(y_) {}

  __device__ void operator()(int64_t number, const Block& block) const {
    const Tile shared;
    const OffsetTable table;
    const Results weights;
    const TapOffsets tap_offsets;
    const auto thread = static_cast<uint32_t>(block.thread());
    const auto at = this->place(number);
    this->load_x(at, thread, shared, table);
    this->find_pixels(at, thread, table);
    this->find_taps(thread, tap_offsets);
    const uint32_t channels = at.count[channel], pixels = Base::pixels_of(at);
    uint32_t lane = thread;
    const uint32_t line = lanes.divide(lane);
    const uint32_t lines = block_threads / lanes.divisor();
    const uint32_t first_channel = by_pixels ? line : lane,
                   channels_at_once = by_pixels ? lines : lanes.divisor();
    const uint32_t first_pixel = by_pixels ? lane : line,
                   pixels_at_once = by_pixels ? lanes.divisor() : lines;
    for (uint32_t m = 0; m < multiplier; ++m) {
      for (uint32_t i = thread; i < taps * tile[channel].divisor(); i += block_threads) {
        uint32_t c = i;
        const uint32_t tap = tile[channel].divide(c);
        Element weight{};
        for (std::size_t j = 0; j < width; ++j)
          if (c < channels)
            weight.lane[j] = convert<Sum<T>>(w[this->result_channel(at.first[channel] + c, j, m) * taps +
                                               (flipped ? taps - 1 - tap : tap)]);
        if (c < channels) weights.write(static_cast<int>(tap * channels + c), weight);
      }
      __syncthreads();
      if (line < lines)
        for (uint32_t c = first_channel; c < channels; c += channels_at_once) {
          T* const target = y + this->result_place(at, c, m);
          Element start{};
          if (bias != nullptr)
            for (std::size_t j = 0; j < width; ++j)
              start.lane[j] = convert<Sum<T>>(bias[this->result_channel(at.first[channel] + c, j, m)]);
          const auto add = [&]<uint32_t count>(std::integral_constant<uint32_t, count>, uint32_t p) {
            add_up<count>(shared, table, weights, tap_offsets, c * channel_step, c, channels, p,
                          pixels_at_once, start, target);
          };
          uint32_t p = first_pixel;
          for (; p + pixels_at_once < pixels; p += 2 * pixels_at_once)
            add(std::integral_constant<uint32_t, 2>{}, p);
          if (p < pixels) add(std::integral_constant<uint32_t, 1>{}, p);
        }
      __syncthreads();  // the next weights, or the next tile of the block
    }
  }

 private:
  /// Threads for so many elements, each of which has as many as the others.
  static int64_t shared_out(int64_t count) {
    return ceil_div(count, ceil_div(count, int64_t{block_threads}));
  }

  /// The results p, p + step, ... of a channel.
  template <uint32_t at_once>
  __device__ void add_up(const Tile& shared, const OffsetTable& table, const Results& weights,
                         const TapOffsets& tap_offsets, uint32_t place, uint32_t c, uint32_t channels,
                         uint32_t p, uint32_t step, const Element& start, T* target) const {
    Vector<uint32_t, 2> at[at_once];
    Element total[at_once];
    PLEAT_UNROLL
    for (uint32_t k = 0; k < at_once; ++k) {
      at[k] = table.read(static_cast<int>(p + k * step));
      at[k].lane[0] += place;
      total[k] = start;
    }
    for (uint32_t tap = 0; tap < taps; ++tap) {
      const uint32_t offset = tap_offsets.read(static_cast<int>(tap));
      const Element weight = weights.read(static_cast<int>(tap * channels + c));
      PLEAT_UNROLL
      for (uint32_t k = 0; k < at_once; ++k) {
        const Element value = shared.read(static_cast<int>(at[k].lane[0] + offset));
        for (std::size_t j = 0; j < width; ++j) total[k].lane[j] += value.lane[j] * weight.lane[j];
      }
    }
    PLEAT_UNROLL
    for (uint32_t k = 0; k < at_once; ++k) {
      T* const result = target + at[k].lane[1];
      Vector<T, width> rounded;
      for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total[k].lane[j]);
      if (to.channel == 1 && multiplier == 1)
        *reinterpret_cast<Vector<T, width>*>(result) = rounded;
      else
        for (std::size_t j = 0; j < width; ++j)
          result[static_cast<int64_t>(j) * multiplier * to.channel] = rounded.lane[j];
    }
  }
};

/// The tiles of x, with so many weights and results at most; nothing where not all taps of a pixel fit into
/// one.
inline std::optional<TilePlan> tile_plan(const ConvProblem& p, int64_t width, bool by_pixels,
                                         int64_t most_weights, int64_t most_results) {
  for (const int64_t size : {p.batch, p.in_channels, p.input_pixels(), p.output_pixels()})
    if (size >= int64_t{1} << 31) return std::nullopt;
  const bool nhwc = p.format == MemoryFormat::channels_last;
  const DenseSteps from(p.format, p.in_channels, p.input_pixels()),
      to(p.format, p.out_channels, p.output_pixels());
  const int64_t bytes = width * sum_bytes(p);
  const TilePlan plan(p, {{}, {p.batch, p.output[0], p.output[1], p.output[2]}},
                      {.channels = p.in_channels / width,
                       .bytes = bytes,
                       .x_image = from.image,
                       .x_channel = width * from.channel,
                       .x_step = {from.pixel * p.input[1] * p.input[2], from.pixel * p.input[2], from.pixel},
                       .loads_channels = nhwc,
                       .by_pixels = by_pixels,
                       .to_image = to.image,
                       .to_pixel = to.pixel,
                       .least_work = 3 * 65536,
                       .most_weights = most_weights,
                       .most_results = most_results});
  const bool has_all = plan.product(tap_d, tap_w) == p.taps() && p.taps() <= most_taps;
  return has_all ? std::optional(plan) : std::nullopt;
}
inline std::optional<TilePlan> forward_plan(const ConvProblem& p, int64_t width) {
  return tile_plan(p, width, p.format == MemoryFormat::contiguous, result_bytes / (width * sum_bytes(p)),
                   most_offsets * most_offsets);
}
inline bool by_tiles(const ConvProblem& p) { return forward_plan(p, 1).has_value(); }

/// y = w x (+ bias), the taps in reversed order if `flipped`; `by_tiles` holds.
template <class T>
void multiply_by_tiles(const ConvProblem& p, const T* x, const T* w, const T* bias, T* y, bool flipped) {
  const auto launch = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
    const auto plan = forward_plan(p, width);
    if (plan)
      launch_blocks(op, p.device, plan->tiles(), DepthwiseTiles<T, width>(*plan, p, x, w, bias, y, flipped));
    return plan.has_value();
  };
  bool done = false;
  by_width<wide, T>(p.in_channels, {x, y}, [&](auto width) { done = launch(width); });
  if (!done) launch(std::integral_constant<std::size_t, 1>{});
}

}  // namespace pleat::ops::depthwise
