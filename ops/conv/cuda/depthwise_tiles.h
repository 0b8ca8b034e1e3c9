// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/tensor/convert.h"
#include "pleat/ops/conv/cuda/image_tiles.h"
#include "pleat/ops/conv/cuda/pixels.h"

/// Depthwise convolutions whose inputs are tiles in shared memory.

namespace pleat::ops::depthwise {

using namespace cuda_conv;
using namespace image_tiles;

inline constexpr int64_t large_shared_bytes = 32768;  ///< of a tile where nothing else is large
inline constexpr int64_t weight_bytes = 8192;         ///< of a tile
inline constexpr int64_t result_bytes = 15360;        ///< of dy of a tile
inline constexpr int64_t most_taps = 1024, most_rows = 192, most_groups = 64;
inline constexpr std::size_t wide = 4;  ///< neighbouring channels of an element of shared memory

/// What is summed: the windows of x at each output, or, for dx, what of dy has read each input. With a stride
/// that is what a convolution of stride 1 of dy reads at each of its outputs, of which `phases` inputs each
/// are the results: number phases * output + phase - shift has the taps phase, phase + phases, ...
struct Sums {
  ConvProblem problem;  ///< its input is what is read
  Spatial phases{1, 1, 1}, shift{0, 0, 0}, size, kernel;
  bool of_dy = false;

  explicit Sums(const ConvProblem& p) : problem(p), size(p.output), kernel(p.kernel) {}
  static Sums for_input(const ConvProblem& p) {
    Sums sums(p);
    ConvProblem& back = sums.problem;
    std::swap(back.in_channels, back.out_channels);
    std::swap(back.input, back.output);
    sums.size = p.input;
    sums.of_dy = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const int64_t phases = p.output[i] == 1 ? 1 : p.stride[i];
      sums.phases[i] = phases;
      const int64_t first = p.padding_low[i] / phases;
      sums.shift[i] = p.padding_low[i] % phases;
      back.kernel[i] = ceil_div(p.kernel[i], phases);
      back.stride[i] = 1;
      back.output[i] = (p.input[i] - 1 + p.padding_low[i]) / phases - first + 1;
      back.padding_low[i] = p.dilation[i] * (back.kernel[i] - 1) - first;
    }
    return sums;
  }
};

/// Steps of [image, channel, d, h, w] in dense images.
struct DenseSteps {
  int64_t image, channel;
  std::array<int64_t, 3> pixel;

  DenseSteps(MemoryFormat format, int64_t channels, const Spatial& size)
      : image(channels * size[0] * size[1] * size[2]),
        channel(format == MemoryFormat::channels_last ? 1 : size[0] * size[1] * size[2]) {
    pixel[2] = format == MemoryFormat::channels_last ? channels : 1;
    pixel[1] = pixel[2] * size[2];
    pixel[0] = pixel[1] * size[1];
  }
};

/// Up to `group_rows` results of a column that are summed at once.
struct alignas(16) Group {
  uint32_t shared;  ///< where the first has its first tap
  uint32_t result;  ///< the first, from the tile's first on
  uint32_t row;     ///< of the first, among those of the tile
  uint32_t rest;

  Group() = default;
  PLEAT_HOST_DEVICE Group(uint32_t shared_, uint32_t result_, uint32_t row_, uint32_t count, uint32_t phase_d,
                          uint32_t phase_h)
      : shared(shared_), result(result_), row(row_), rest(count << 16 | phase_d << 8 | phase_h) {}
  PLEAT_HOST_DEVICE uint32_t count() const { return rest >> 16; }
  PLEAT_HOST_DEVICE uint32_t phase_d() const { return rest >> 8 & 255; }
  PLEAT_HOST_DEVICE uint32_t phase_h() const { return rest & 255; }
};
inline constexpr int64_t most_phases = 256;

/// x in shared memory, `width` neighbouring channels an element, and where the results of a tile lie.
template <class T, std::size_t width>
struct DepthwiseBase : ImageTiles<T> {
  using Tiles = ImageTiles<T>;
  using Tiles::along, Tiles::loads_channels, Tiles::tile;
  using typename Tiles::Place;
  using Element = Vector<Sum<T>, width>;
  using Lines = SharedArray<Vector<uint32_t, 2>, most_rows>;
  using Groups = SharedArray<Group, most_groups>;
  using TapOffsets = SharedArray<uint16_t, most_taps>;
  std::array<Divider<uint32_t>, 3> phases, kernel;
  uint32_t shift[3], results[3];
  Divider<uint32_t> row_groups, width_of_tile, lanes;
  uint32_t columns, slots;
  uint32_t taps, multiplier;  ///< multiplier: outputs of a channel
  bool of_dy;
  DenseSteps from, to;

  DepthwiseBase(const TilePlan& plan, const Sums& sums, const T* x_)
      : Tiles(plan, x_, false),
        row_groups(ceil_div(plan.tile[out_h], group_rows)),
        width_of_tile(plan.tile[out_w] * sums.phases[2]),
        columns(static_cast<uint32_t>(plan.tile[channel] * width_of_tile.divisor())),
        slots(static_cast<uint32_t>(plan.groups())),
        taps(static_cast<uint32_t>(sums.kernel[0] * sums.kernel[1] * sums.kernel[2])),
        multiplier(static_cast<uint32_t>(sums.problem.group_out())),
        of_dy(sums.of_dy),
        from(sums.problem.format, sums.problem.in_channels, sums.problem.input),
        to(sums.problem.format, sums.problem.out_channels, sums.size) {
    lanes = Divider<uint32_t>(std::min<int64_t>(columns, block_threads));
    for (std::size_t i = 0; i < 3; ++i) {
      phases[i] = Divider<uint32_t>(sums.phases[i]);
      kernel[i] = Divider<uint32_t>(sums.kernel[i]);
      shift[i] = static_cast<uint32_t>(sums.shift[i]);
      results[i] = static_cast<uint32_t>(sums.size[i]);
    }
  }

  template <class Tile>
  __device__ void load_x(const Place& at, uint32_t thread, const Tile& shared, const Lines& lines) const {
    if (from.channel == 1)
      this->template load<Element>(at, thread, shared, lines,
                                   [](const T* first) { return sums_of(first, true, 1); });
    else
      this->template load<Element>(at, thread, shared, lines,
                                   [this](const T* first) { return sums_of(first, false, from.channel); });
  }
  /// The number of a result, or one that is too large.
  __device__ uint32_t result_number(std::size_t i, const Place& at, uint32_t output, uint32_t phase) const {
    return (at.first[out_d + i] + output) * phases[i].divisor() + phase - shift[i];
  }
  /// A tap counts from an output's first element of x on; for dx, of those of dy backwards from the last.
  __device__ void find_taps(uint32_t thread, const TapOffsets& offsets) const {
    for (uint32_t i = thread; i < taps; i += block_threads) {
      uint32_t tap[3], rest = i, offset = 0;
      PLEAT_UNROLL
      for (std::size_t j = 3; j-- > 0;) {
        tap[j] = rest;
        rest = kernel[j].divide(tap[j]);
        const uint32_t turn = phases[j].divide(tap[j]);
        offset +=
            this->place_of(j, (of_dy ? tile[tap_d + j].divisor() - 1 - turn : turn) * along[j].tap_step);
      }
      offsets.write(static_cast<int>(i), static_cast<uint16_t>(offset));
    }
  }
  __device__ void find_groups(const Place& at, uint32_t thread, const Groups& groups) const {
    for (uint32_t i = thread; i < slots; i += block_threads) {
      uint32_t h = i;
      uint32_t phase_h = row_groups.divide(h);
      uint32_t phase_d = phases[1].divide(phase_h);
      uint32_t d = phases[0].divide(phase_d);
      const uint32_t n = tile[out_d].divide(d);
      // The first row may not be there, nor the last.
      h = h * uint32_t{group_rows} + (result_number(1, at, 0, phase_h) < results[1] ? 0 : 1);
      uint32_t end = std::min(at.count[out_h], h + uint32_t{group_rows});
      if (h < end && result_number(1, at, end - 1, phase_h) >= results[1]) --end;
      const bool is_there = n < at.count[image] && d < at.count[out_d] && h < end &&
                            result_number(0, at, d, phase_d) < results[0];
      groups.write(static_cast<int>(i),
                   {n * this->image_step + d * along[0].pixel_step + h * along[1].pixel_step,
                    static_cast<uint32_t>(n * to.image + (d * phases[0].divisor() + phase_d) * to.pixel[0] +
                                          (h * phases[1].divisor() + phase_h) * to.pixel[1]),
                    (n * tile[out_d].divisor() + d) * tile[out_h].divisor() + h, is_there ? end - h : 0,
                    phase_d, phase_h});
    }
  }
  /// f(channel, column, phase along w, place in shared memory, place of its results, the thread's groups'
  /// first and step) for the columns of the tile that are there.
  template <class F>
  __device__ void for_each_column(const Place& at, uint32_t thread, const F& f) const {
    uint32_t lane = thread;
    const uint32_t line = lanes.divide(lane);
    const uint32_t lines = block_threads / lanes.divisor();
    if (line >= lines) return;
    for (; lane < columns; lane += lanes.divisor()) {
      uint32_t c = 0, w = lane;
      if (loads_channels) {
        c = w;
        w = tile[channel].divide(c);
      } else {
        c = width_of_tile.divide(w);
      }
      uint32_t phase = w;
      const uint32_t output = phases[2].divide(phase);
      if (c >= at.count[channel] || output >= at.count[out_w] ||
          result_number(2, at, output, phase) >= results[2])
        continue;
      f(c, w, phase, c * this->channel_step + output * along[2].pixel_step,
        result_channel(c, 0, 0) * to.channel + w * to.pixel[2], line, lines);
    }
  }
  __device__ int64_t result_channel(uint32_t c, std::size_t j, uint32_t m) const {
    return (int64_t{c} * static_cast<int64_t>(width) + static_cast<int64_t>(j)) * multiplier + m;
  }
  /// Where result 0 of the tile is; it need not be there.
  __device__ int64_t first_result(const Place& at) const {
    int64_t first = at.first[image] * to.image + result_channel(at.first[channel], 0, 0) * to.channel;
    PLEAT_UNROLL
    for (std::size_t i = 0; i < 3; ++i)
      first += (int64_t{at.first[out_d + i]} * phases[i].divisor() - shift[i]) * to.pixel[i];
    return first;
  }
  /// From a row of a group to the next.
  __device__ int64_t row_step() const { return phases[1].divisor() * to.pixel[1]; }

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

/// Results from x in shared memory, `width` neighbouring channels and up to `group_rows` rows a thread.
template <class T, std::size_t width>
struct DepthwiseTiles : DepthwiseBase<T, width> {
  static constexpr bool keeps_registers = true;
  using Base = DepthwiseBase<T, width>;
  using Base::kernel, Base::multiplier, Base::phases, Base::taps, Base::tile, Base::to;
  using typename Base::Element, typename Base::TapOffsets;
  using Tile = SharedArray<Element, large_shared_bytes / sizeof(Element)>;
  using Weights = SharedArray<Element, weight_bytes / sizeof(Element)>;
  const T* w;
  const T* bias;  ///< null: none
  T* y;
  bool slides;  ///< the taps of a column lie side by side

  DepthwiseTiles(const TilePlan& plan, const Sums& sums, const T* x_, const T* w_, const T* bias_, T* y_)
      : Base(plan, sums, x_),
        w(w_),
        bias(bias_),
        y(y_),
        slides(plan.along[1].turns.divisor() == 1 && plan.along[1].tap_step == 1) {}

  __device__ void operator()(int64_t number, const Block& block) const {
    static_assert(keeps_registers);
    const Tile shared;
    const typename Base::Lines lines;
    const typename Base::Groups groups;
    const Weights weights;
    const TapOffsets tap_offsets;
    const auto thread = static_cast<uint32_t>(block.thread());
    const auto at = this->place(number, thread);
    this->find_groups(at, thread, groups);
    this->find_taps(thread, tap_offsets);
    for (uint32_t m = 0; m < multiplier; ++m) {
      if (m > 0) __syncthreads();  // until all have read the weights
      for (uint32_t i = thread; i < taps * tile[channel].divisor(); i += block_threads) {
        uint32_t c = i;
        const uint32_t tap = tile[channel].divide(c);
        if (c >= at.count[channel]) continue;
        Element weight;
        for (std::size_t j = 0; j < width; ++j)
          weight.lane[j] = convert<Sum<T>>(w[this->result_channel(at.first[channel] + c, j, m) * taps + tap]);
        weights.write(static_cast<int>(c * (taps | 1) + tap), weight);
      }
      if (m == 0)
        this->load_x(at, thread, shared, lines);
      else
        __syncthreads();
      const int64_t first = this->first_result(at) + m * to.channel;
      this->for_each_column(
          at, thread,
          [&](uint32_t c, uint32_t, uint32_t phase, uint32_t place, int64_t result, uint32_t group,
              uint32_t step) {
            Element start{};
            if (bias != nullptr)
              for (std::size_t j = 0; j < width; ++j)
                start.lane[j] = convert<Sum<T>>(bias[this->result_channel(at.first[channel] + c, j, m)]);
            for (; group < this->slots; group += step) {
              Group each = groups.read(static_cast<int>(group));
              each.shared += place;
              int64_t target = first + result + each.result;
              if (each.count() == group_rows) {
                add_up<group_rows>(shared, weights, tap_offsets, each, c, phase, start, target);
              } else {
                for (uint32_t row = 0; row < each.count(); ++row, ++each.shared, target += this->row_step())
                  add_up<1>(shared, weights, tap_offsets, each, c, phase, start, target);
              }
            }
          });
    }
  }

 private:
  template <uint32_t rows>
  __device__ void add_up(const Tile& shared, const Weights& weights, const TapOffsets& tap_offsets,
                         const Group& group, uint32_t c, uint32_t phase, const Element& start,
                         int64_t target) const {
    Element total[rows];
    PLEAT_UNROLL
    for (uint32_t k = 0; k < rows; ++k) total[k] = start;
    const uint32_t lines = kernel[1].divisor(), taps_of_line = kernel[2].divisor();
    uint32_t column_taps = 1;  // that are added up at once
    if (rows > 1 && slides) {
      column_taps = lines - group.phase_h() + phases[1].divisor() - 1;
      column_taps = phases[1].divide(column_taps);
    }
    for (uint32_t t = group.phase_d(); t < kernel[0].divisor(); t += phases[0].divisor())
      for (uint32_t r = group.phase_h(); r < lines; r += column_taps * phases[1].divisor()) {
        // The tap of the first place: for dx the last one.
        const uint32_t line = t * lines + r + (this->of_dy ? (column_taps - 1) * phases[1].divisor() : 0);
        for (uint32_t s = phase; s < taps_of_line; s += phases[2].divisor()) {
          const uint32_t tap = line * taps_of_line + s;
          add_column<rows>(shared, group.shared + tap_offsets.read(static_cast<int>(tap)), weights,
                           c * (taps | 1) + tap, column_taps, total);
        }
      }
    PLEAT_UNROLL
    for (uint32_t k = 0; k < rows; ++k) {
      const int64_t result = target + k * this->row_step();
      Vector<T, width> rounded;
      for (std::size_t j = 0; j < width; ++j) rounded.lane[j] = convert<T>(total[k].lane[j]);
      if (to.channel == 1 && multiplier == 1)
        reinterpret_cast<Vector<T, width>*>(y)[static_cast<std::size_t>(result) / width] = rounded;
      else
        for (std::size_t j = 0; j < width; ++j)
          y[result + static_cast<int64_t>(j) * multiplier * to.channel] = rounded.lane[j];
    }
  }
  /// Of `count` taps that lie side by side in shared memory, as rows do, so that an element is read once.
  template <uint32_t rows>
  __device__ void add_column(const Tile& shared, uint32_t place, const Weights& weights, uint32_t weight,
                             uint32_t count, Element* total) const {
    const uint32_t line = phases[1].divisor() * kernel[2].divisor(), weight_step = this->of_dy ? -line : line;
    Element value[rows];
    PLEAT_UNROLL
    for (uint32_t k = 0; k < rows; ++k) value[k] = shared.read(static_cast<int>(place + k));
    place += rows;
    PLEAT_ROLLED
    for (uint32_t r = 0;; r += rows) {
      PLEAT_UNROLL
      for (uint32_t i = 0; i < rows; ++i) {
        const Element factor = weights.read(static_cast<int>(weight));
        PLEAT_UNROLL
        for (uint32_t k = 0; k < rows; ++k)
          for (std::size_t j = 0; j < width; ++j)
            total[k].lane[j] += value[(k + i) % rows].lane[j] * factor.lane[j];
        if (r + i + 1 == count) return;
        weight += weight_step;
        value[i] = shared.read(static_cast<int>(place + r + i));
      }
    }
  }
};

/// The tiles of x, of so many channels and results at most; nothing where not all taps of a pixel fit into
/// one.
inline std::optional<TilePlan> tile_plan(const Sums& sums, int64_t width, int64_t most_channels,
                                         int64_t most_results, int64_t shared) {
  const ConvProblem& p = sums.problem;
  constexpr int64_t large = int64_t{1} << 30;
  for (const int64_t size : {p.batch, p.in_channels, p.input_pixels(), p.output_pixels(),
                             sums.size[0] * sums.size[1] * sums.size[2]})
    if (size >= large) return std::nullopt;
  for (std::size_t i = 0; i < 3; ++i)
    if (sums.phases[i] > most_phases || (sums.phases[i] > 1 && sums.kernel[i] > 1 && p.dilation[i] > 1))
      return std::nullopt;
  const int64_t taps = sums.kernel[0] * sums.kernel[1] * sums.kernel[2];
  if (taps > most_taps || most_channels < 1 || (sums.of_dy && p.in_channels != p.groups)) return std::nullopt;
  const DenseSteps from(p.format, p.in_channels, p.input), to(p.format, p.out_channels, sums.size);
  const int64_t bytes = width * sum_bytes(p);
  TileWish wish{.channels = p.in_channels / width,
                .bytes = bytes,
                .x_image = from.image,
                .x_channel = width * from.channel,
                .x_step = from.pixel,
                .loads_channels = p.format == MemoryFormat::channels_last,
                .by_pixels = true,
                .least_work = 3 * 65536,
                .phases = sums.phases[0] * sums.phases[1],
                .to_image = to.image,
                .together = std::max<int64_t>(1, 32 / (width * element_bytes(p))),
                .most_channels = most_channels,
                .most_rows = most_rows,
                .most_groups = most_groups,
                .most_results = most_results,
                .shared = shared};
  for (std::size_t i = 0; i < 3; ++i) wish.to_step[i] = sums.phases[i] * to.pixel[i];
  const TilePlan plan(p, {{}, {p.batch, p.output[0], p.output[1], p.output[2]}}, wish);
  return plan.product(tap_d, tap_w) == p.taps() && plan.groups() <= most_groups ? std::optional(plan)
                                                                                : std::nullopt;
}
inline std::optional<TilePlan> result_plan(const Sums& sums, int64_t width) {
  const int64_t taps = sums.kernel[0] * sums.kernel[1] * sums.kernel[2];
  return tile_plan(sums, width, weight_bytes / (width * sum_bytes(sums.problem) * (taps | 1)),
                   int64_t{1} << 30, large_shared_bytes);
}
inline bool by_tiles(const Sums& sums) { return result_plan(sums, 1).has_value(); }

/// The sums (+ bias); `by_tiles` holds.
template <class T>
void multiply_by_tiles(const Sums& sums, const T* x, const T* w, const T* bias, T* y) {
  const auto launch = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
    const auto plan = result_plan(sums, width);
    if (plan)
      launch_blocks(op, sums.problem.device, plan->tiles(),
                    DepthwiseTiles<T, width>(*plan, sums, x, w, bias, y));
    return plan.has_value();
  };
  bool done = false;
  by_width<wide, T>(sums.problem.in_channels, {x, y}, [&](auto width) { done = launch(width); });
  if (!done) launch(std::integral_constant<std::size_t, 1>{});
}

}  // namespace pleat::ops::depthwise
