#include "pleat/ops/conv/cpu/direct_lanes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "pleat/core/base/streaming.h"
#include "pleat/ops/conv/cpu/direct.h"

/// Convolution lane by lane: depthwise, and in groups of few channels, where a panel of one group's channels
/// would leave most lanes idle. Vectors lie along the channels of all groups. A depthwise convolution reads
/// its source where it lies. For groups a block of the result's channels has the source spread out before:
/// an element for each lane, once for each channel of a group. So both are the same sum over taps, one more
/// `tap` for each channel. A tile of pixels, or of taps for the gradient of the weight, stays in registers.
/// Each product loads a vector of the source, which is as much as the first-level cache gives; where pixels
/// of a tile lie side by side as taps do (stride 1), a vector is loaded once for all of them (slide_lanes).
/// What the next tile reads and writes is fetched meanwhile.
///
/// Of a line whose pixels lack taps at its borders all are computed together: what lies beyond a border is
/// left out of their sums (LineInside).
///
/// One thread of a Zen 4, float32, busy machine, of the FMA ceiling, products on padding counted: 3x3 of 144
/// channels 45 % in the second-level cache and 23 % from memory, where it moves 12 GB/s of the 30 of a copy;
/// 7x7 of 96 to 384 channels 50 to 57 %, of 768 on 7x7 65 %; 5x5 of 672 channels on 14x14 45 %, of 960 on 7x7
/// 54 %.

namespace pleat::ops {
namespace {

using namespace direct_lanes;
using simd::for_constants;

template <class T>
struct LaneOperands {
  const T* source;
  int64_t step;      ///< from a tap of a run to the next
  const T* weights;  ///< [taps][channels]
  int64_t depth;     ///< taps for each tap of the gather
  int64_t channels;  ///< of the result
};

/// What stride leaves to fetch beside the last tap: of a pixel, `distance` behind, the last taps of the last
/// runs, as many as the source steps.
struct StridedAhead {
  int64_t distance;
  std::size_t runs;  ///< 0: nothing
  int64_t taps;
};

/// Of the tile behind the one from pixel p on, where the source is large. (From a cache it costs more than it
/// saves.)
template <class T>
StridedAhead strided_ahead(const Gather& gather, const GatherPixels& pixels, std::size_t p) {
  const int64_t source = gather.batch * gather.source[0] * gather.source[1] * gather.source[2];
  const int64_t lines = gather.dims[1].source_step, taps = gather.dims[2].source_step;
  if (lines * taps == 1 || p + pixel_tile >= pixels.bases.size() ||
      !is_streamed(source * gather.source_pitch() * static_cast<int64_t>(sizeof(T))))
    return {};
  return {pixels.bases[p + pixel_tile] - pixels.bases[p], static_cast<std::size_t>(lines), taps};
}

/// y[row] = start + the sum over taps for some pixels and one or two vectors.
template <class T, int bytes, int vectors, int pixel_count>
void sum_lanes(const LaneOperands<T>& in, const int64_t* bases, const std::vector<GatherRun>& runs,
               const TileAhead& ahead, const StridedAhead& strided, const T* start, T* y,
               const int64_t* rows) {
  using V = Vector<T, bytes>;
  constexpr int64_t width = bytes / static_cast<int64_t>(sizeof(T));
  V total[pixel_count][vectors];
  const T* pixels[pixel_count];
  for_constants<pixel_count>([&](auto i) {
    pixels[i] = in.source + bases[i];
    for (std::size_t r = runs.size() - std::min(strided.runs, runs.size()); r < runs.size(); ++r)
      for (int64_t tap = 1; tap <= strided.taps; ++tap) {
        const T* const at = pixels[i] + strided.distance + runs[r].offset + runs[r].length - tap * in.step;
        for (int v = 0; v < vectors; ++v) __builtin_prefetch(at + v * width, 0, 2);
      }
    for_constants<vectors>([&](auto v) {
      total[i][v] = simd::load<bytes>(start + v * width);
      if (ahead.source == 0) return;
      __builtin_prefetch(pixels[i] + ahead.source + v * width, 0, 2);
      __builtin_prefetch(y + (rows[i] + ahead.rows) * in.channels + v * width, 1);
    });
  });
  for (const GatherRun& run : runs) {
    const T* w = in.weights + run.tap * in.depth * in.channels;
    for (int64_t c = run.offset; c < run.offset + run.length; c += in.step, w += in.channels)
      for_constants<vectors>([&](auto v) {
        const V weight = simd::load<bytes>(w + v * width);
        for_constants<pixel_count>(
            [&](auto i) { total[i][v] += simd::load<bytes>(pixels[i] + c + v * width) * weight; });
      });
  }
  const int64_t channels = in.channels;
  for_constants<pixel_count>([&](auto i) {
    T* to = y + rows[i] * channels;
    for_constants<vectors>([&](auto v) { simd::store<bytes>(to + v * width, total[i][v]); });
  });
}

/// Taps of a run that slide_lanes takes together.
constexpr int most_taps_together = 5;

/// total[i] += the sum over `taps` taps for pixels that lie `step` apart, as taps do: each element is loaded
/// once for all pixels that read it. Those before `begin` and from `end` on are padding.
template <class T, int vectors, int taps, int pixel_count>
[[gnu::always_inline]] inline void slide_taps(const T* x, int64_t step, const T* w, int64_t channels,
                                              int64_t begin, int64_t end,
                                              Vector<T> (&total)[pixel_count][vectors]) {
  using V = Vector<T>;
  V weight[taps][vectors];
#pragma GCC unroll 8
  for (int s = 0; s < taps; ++s)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) weight[s][v] = simd::load(w + s * channels + v * lanes<T>);
#pragma GCC unroll 16
  for (int q = 0; q < pixel_count + taps - 1; ++q) {
    if (q < begin || q >= end) continue;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const V value = simd::load(x + q * step + v * lanes<T>);
#pragma GCC unroll 8
      for (int s = 0; s < taps; ++s)
        if (q >= s && q - s < pixel_count) total[q - s][v] += value * weight[s][v];
    }
  }
}

/// Of the elements that a tile reads of a line, from the first pixel's first tap on, those that are inside
/// the source, for so many taps a line.
struct LineInside {
  int64_t taps = std::numeric_limits<int64_t>::max();
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
};

/// sum_lanes for pixels side by side: the same sums in the same order from fewer loads.
template <class T, int vectors, int pixel_count>
void slide_lanes(const LaneOperands<T>& in, const int64_t* bases, const std::vector<GatherRun>& runs,
                 const LineInside& inside, const TileAhead& ahead, const T* start, T* y,
                 const int64_t* rows) {
  using V = Vector<T>;
  V total[pixel_count][vectors];
  const T* first = in.source + bases[0];
  for_constants<pixel_count>([&](auto i) {
    for_constants<vectors>([&](auto v) {
      total[i][v] = simd::load(start + v * lanes<T>);
      __builtin_prefetch(first + i * in.step + ahead.source + v * lanes<T>, 0, 2);
      __builtin_prefetch(y + (rows[i] + ahead.rows) * in.channels + v * lanes<T>, 1);
    });
  });
  for (const GatherRun& run : runs) {
    const T* w = in.weights + run.tap * in.channels;
    const T* x = first + run.offset;
    int64_t of_line = 0;  // taps of the line that are done
    for (int64_t rest = run.length / in.step; rest > 0;) {
      const int64_t left = std::min(rest, inside.taps - of_line);
      const int64_t some =
          left <= most_taps_together ? left : std::min<int64_t>(left - left / 2, most_taps_together);
      const auto take = [&](auto taps) {
        if (some == taps)
          slide_taps<T, vectors, taps, pixel_count>(x, in.step, w, in.channels, inside.begin - of_line,
                                                    inside.end - of_line, total);
      };
      take(std::integral_constant<int, 1>());
      take(std::integral_constant<int, 2>());
      take(std::integral_constant<int, 3>());
      take(std::integral_constant<int, 4>());
      take(std::integral_constant<int, 5>());
      rest -= some;
      of_line = left > some ? of_line + some : 0;
      x += some * in.step;
      w += some * in.channels;
    }
  }
  for_constants<pixel_count>([&](auto i) {
    T* to = y + rows[i] * in.channels;
    for_constants<vectors>([&](auto v) { simd::store(to + v * lanes<T>, total[i][v]); });
  });
}

/// slide_lanes for 1 ... pixel_tile pixels.
template <class T, int vectors>
constexpr auto slide_lanes_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&slide_lanes<T, vectors, i + 1>...};
}
(std::make_integer_sequence<int, pixel_tile>());

/// sum_lanes for 1 ... pixel_tile pixels.
template <class T, int bytes, int vectors>
constexpr auto sum_lanes_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_lanes<T, bytes, vectors, i + 1>...};
}
(std::make_integer_sequence<int, pixel_tile>());

/// Rows of a large result that are computed in a stage, and then written past the caches. (Where products
/// take longer, as in panels, that would gain nothing.)
constexpr std::size_t rows_staged = 16;
/// 0, 1, 2 ...
constexpr auto rows_in_turn = [] {
  std::array<int64_t, rows_staged> rows{};
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}();

/// The next pixels of a line that are computed together, from `row` of the result on, of at most `count`.
template <class T>
Tile tile_of_line(const Gather& gather, const LanePlan<T>& plan, const int64_t* bases, int64_t row,
                  std::size_t count, LineInside& inside) {
  const GatherDim& line = gather.dims[2];
  const int64_t column = (row % gather.result[2] - line.first) / line.step;
  count = std::min({count, static_cast<std::size_t>(line.count - column), pixels_looked_at});
  std::size_t pixels = 1;
  while (pixels < count && bases[pixels] - bases[pixels - 1] == plan.step) ++pixels;
  const int64_t first = column + line.low();
  inside = {static_cast<int64_t>(line.taps.size()), -first, gather.source[2] - first};
  const std::size_t tiles = (pixels + pixel_tile - 1) / pixel_tile;
  return {(pixels + tiles - 1) / tiles, true};
}

/// All pixels of a piece for blocks `begin` to `end`. `in` and `y` are those of the first channel; `sums`,
/// where they are wanted, are made as part `part`. With `stage`, results are computed there, and then
/// written past the caches.
template <class T>
void sum_blocks(const Gather& gather, const LanePlan<T>& plan, int64_t begin, int64_t end,
                const LaneOperands<T>& in, const GatherPixels& pixels, const T* bias, T* y, T* stage,
                const Completion<T>& completion, int64_t part) {
  static constexpr T zeros[most_vectors * lanes<T>] = {};
  // The sums of what the last block computes again are those of the one before.
  const int64_t channel = begin * plan.block;
  const int64_t channels = std::min(end * plan.block, plan.channels) - channel;
  const int64_t computed = plan.first(begin);
  const RowValues<T> to{stage != nullptr ? stage : y, plan.channels, stage != nullptr};
  // Where pixels lie apart, in the last cache fetching costs more than it saves.
  constexpr int64_t least_far = int64_t{8} << 20;
  const bool is_far = gather.batch * gather.result[0] * gather.result[1] * gather.result[2] * plan.channels *
                          static_cast<int64_t>(sizeof(T)) >=
                      least_far;
  std::size_t p = 0, done = 0;  // pixels computed; those of them that are summed, and written past the caches
  const auto finish = [&] {
    const int64_t* rows = &pixels.rows[done];
    const auto count = static_cast<int64_t>(p - done);
    done = p;
    completion.add_sums(part, channel, channels, {to.first + channel, to.pitch, to.staged}, rows,
                        plan.channels, count);
    completion.finish_rows(computed, channel + channels - computed,
                           {to.first + computed, to.pitch, to.staged}, rows, plan.channels, count);
    for (int64_t i = 0; to.staged && i < count; ++i)
      stream_bytes(y + rows[i] * plan.channels + channel, stage + i * plan.channels + channel,
                   channels * static_cast<int64_t>(sizeof(T)));
  };
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const int64_t* bases = &pixels.bases[p];
      const int64_t* rows = to.staged ? &rows_in_turn[p - done] : &pixels.rows[p];
      Tile tile{std::min<std::size_t>(pixel_tile, group.end - p), false};
      LineInside inside;
      if (plan.whole_lines)
        tile = tile_of_line(gather, plan, bases, pixels.rows[p], group.end - p, inside);
      else if (plan.width == lanes<T>)
        tile = next_tile(bases, group.end - p, group.runs, plan.step);
      TileAhead ahead = tile.slide || is_far ? what_is_ahead(pixels, p, group.runs, plan.step) : TileAhead{};
      if (to.staged) ahead.rows = 0;
      const StridedAhead strided = strided_ahead<T>(gather, pixels, p);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = plan.first(i);
        LaneOperands<T> of_block = in;
        of_block.weights += first;
        if (plan.in_place) of_block.source += first;
        const T* start = bias != nullptr ? bias + first : zeros;
        if (tile.slide) {
          const auto run = plan.vectors(i) == most_vectors ? slide_lanes_of<T, most_vectors>[tile.pixels - 1]
                                                           : slide_lanes_of<T, 1>[tile.pixels - 1];
          run(of_block, bases, group.runs, inside, ahead, start, to.first + first, rows);
          continue;
        }
        by_vectors(plan, i, [&](auto bytes, auto vectors) {
          sum_lanes_of<T, bytes, vectors>[tile.pixels - 1](of_block, bases, group.runs, ahead, strided, start,
                                                           to.first + first, rows);
        });
      }
      p += tile.pixels;
      const std::size_t most = to.staged ? rows_staged - pixel_tile : rows_completed - 1;
      if (p - done > most || p == pixels.rows.size()) finish();
    }
  end_streaming();
}

/// Whether the pixels of a line are computed together, those that lack taps at its borders, too: where they
/// read the same elements.
template <class T>
bool whole_lines_suit(const Gather& gather) {
  return gather.source_channels == 1 && gather.result_channels == 1 && gather.result_pitch() >= lanes<T> &&
         slides(gather.dims[2]) && gather.dims[2].count >= static_cast<int64_t>(least_slide);
}

template <class T>
LanePlan<T> result_plan(const Gather& gather) {
  const int64_t fitting = std::min(most_pixels, buffer_elements_wanted / gather.result_pitch());
  return {gather, gather.pixels_wanted(fitting, fewest_pixels), !slides(gather.dims[2]),
          whole_lines_suit<T>(gather)};
}

/// Of a stage for a result that is large, in pixels of whole lines; else none.
template <class T>
int64_t stage_elements(const Gather& gather, const LanePlan<T>& plan) {
  const int64_t pixels = gather.batch * gather.result[0] * gather.result[1] * gather.result[2];
  const bool streamed = plan.in_place && plan.channels % line_elements<T> == 0 &&
                        is_streamed(pixels * plan.channels * static_cast<int64_t>(sizeof(T)));
  return streamed ? static_cast<int64_t>(rows_staged) * plan.channels : 0;
}

/// Whether a group has so few channels that this takes less work than a product for each group.
bool lanes_suit(const Gather& gather) {
  return gather.groups > 1 &&
         (gather.source_channels == 1 || (gather.result_channels <= 2 && gather.source_channels <= 8));
}

template <class T>
GatherTasks<T> lane_tasks(const Gather& gather, const GatherWeights<T>& weights) {
  LanePlan<T> plan = result_plan<T>(gather);
  if (weights.shared != nullptr) plan.pieces.keep_lists(plan.depth * plan.step);
  const auto packed = pack_lanes(gather, weights, gather.result_pitch());
  // In place, blocks of a pixel one after the other, as they lie in memory, as many as have weights for half
  // of the first-level cache; for a quarter, where the result is not large: lines of the source stay there,
  // too. The last one belongs to the task of the block before, of which it computes a part.
  const int64_t staged = stage_elements(gather, plan);
  const int64_t weights_of_block = plan.block * gather.depth() * static_cast<int64_t>(sizeof(T));
  const int64_t fitting =
      staged > 0 ? weight_bytes / weights_of_block : ceil_div(weight_bytes / 2, weights_of_block);
  const int64_t together = plan.in_place ? std::max<int64_t>(fitting, 1) : 1;
  const int64_t starts = std::max<int64_t>(plan.blocks() - 1, 1);
  const int64_t parts = std::min(starts, ceil_div(tasks_wanted, plan.pieces.count()));
  const auto run = [=](int64_t task, const GatherOperands<T>& operands) {
    const auto memory = scratch<T>(plan.buffer_elements() + staged);
    T* buffer = elements_of<T>(memory);
    T* stage = staged > 0 ? buffer + plan.buffer_elements() : nullptr;
    const int64_t piece = task / parts;
    const int64_t part = task % parts;
    const int64_t begin = starts * part / parts;
    const int64_t end = part + 1 == parts ? plan.blocks() : starts * (part + 1) / parts;
    const GatherPixels& pixels = plan.pieces.listed(piece, plan.depth * plan.step);
    const LaneOperands<T> in{plan.in_place ? operands.source : buffer, plan.step, elements_of<T>(packed),
                             plan.depth, plan.channels};
    for (int64_t i = begin; i < end; i += together) {
      if (!plan.in_place) fill_block(gather, plan, piece, operands.source, i, buffer);
      sum_blocks(gather, plan, i, std::min(i + together, end), in, pixels, operands.bias, operands.y, stage,
                 operands.completion, piece);
    }
  };
  return {plan.pieces.count() * parts, run, plan.pieces.count()};
}

template <class T>
GatherMemory lanes_memory(const Gather& gather) {
  constexpr int64_t element = sizeof(T);
  const LanePlan<T> plan = result_plan<T>(gather);
  return {gather.depth() * gather.result_pitch() * element,
          (plan.buffer_elements() + stage_elements(gather, plan)) * element};
}

}  // namespace

template <class T>
DirectKernel<T> lanes_kernel() {
  return {lanes_suit, lane_tasks<T>, lanes_memory<T>, true};
}
template DirectKernel<float> lanes_kernel();
template DirectKernel<double> lanes_kernel();

}  // namespace pleat::ops
