#include <algorithm>
#include <array>
#include <utility>

#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Convolution lane by lane: depthwise, and in groups of few channels, where a panel of one group's channels
/// would leave most lanes idle. Vectors lie along the channels of all groups. A depthwise convolution reads
/// its source where it lies. For groups a block of the result's channels has the source spread out before: an
/// element for each lane, once for each channel of a group. So both are the same sum over taps, one more
/// `tap` for each channel. A tile of pixels, or of taps for the gradient of the weight, stays in registers.
/// Each product loads a vector of the source, which is as much as the first-level cache gives; where pixels
/// of a tile lie side by side as taps do (stride 1), a vector is loaded once for all of them (slide_lanes).
/// What the next tile reads and writes is fetched meanwhile.
///
/// One thread of a Zen 4, float32, of the FMA ceiling: 3x3 of 144 channels 45 % in the second-level cache and
/// 16 % from memory, where it moves 8 GB/s of the 20 of a copy; 7x7 of 96 channels 61 %; 5x5 of 672 channels
/// on 14x14 40 %.

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

constexpr int pixel_tile = 8;
/// Taps whose sums a tile of the gradient of the weight has: with two vectors of each, most registers.
constexpr int64_t tap_tile = 10;
/// Pixels of a piece that is read in place: of a block of channels they fit into the second-level cache.
constexpr int64_t most_pixels = 1024;
/// The same for the gradient of the weight, and how many blocks of channels it takes one after the other, so
/// that what lies side by side is read at about the same time.
constexpr int64_t sum_pixels = 512;
constexpr int64_t most_together = 4;
/// Bytes of weights that stay in the first-level cache beside the source.
constexpr int64_t weight_bytes = 16 << 10;

/// How a gather is computed: its result's channels in blocks of one or two vectors. The last block begins
/// earlier where it would not be full, so that no vector is: its first channels are computed twice.
template <class T>
struct LanePlan {
  int64_t channels;  ///< of the result
  bool in_place;     ///< whether lanes read the source where it lies
  int64_t depth;     ///< channels of the source that a lane reads
  int64_t width;     ///< lanes of a vector
  int64_t block;     ///< channels of a block; the last has as many or one vector
  int64_t step;      ///< from an element that a lane reads to the next in a run
  GatherPieces pieces;

  LanePlan(const Gather& gather, int64_t pixels)
      : channels(gather.result_pitch()),
        in_place(is_depthwise(gather) && !is_crowded<T>(channels)),
        depth(gather.source_channels),
        width(channels >= lanes<T>       ? lanes<T>
              : channels >= lanes<T> / 4 ? lanes<T> / 4
                                         : 1),
        block(is_depthwise(gather) && channels >= 2 * lanes<T> ? 2 * width : width),
        step(in_place ? channels : block),
        pieces(in_place ? GatherPieces::in_place(gather, pixels)
                        : GatherPieces::for_results(gather, buffer_elements_wanted, depth * block)) {}

  static bool is_depthwise(const Gather& gather) {
    return gather.source_channels == 1 && gather.result_channels == 1;
  }
  int64_t blocks() const { return ceil_div(channels, block); }
  int64_t vectors(int64_t i) const { return channels - i * block > width ? block / width : 1; }
  int64_t first(int64_t i) const { return std::min(i * block, channels - vectors(i) * width); }
  /// Elements of the buffer; vectors that are spread over its last elements reach beyond them.
  int64_t buffer_elements() const { return in_place ? 0 : pieces.buffer_elements() + lanes<T>; }
};

/// Calls `f` with constants: bytes and number of the vectors of block i.
template <class T, class F>
void by_vectors(const LanePlan<T>& plan, int64_t i, const F& f) {
  constexpr int element = sizeof(T);
  if (plan.vectors(i) == 2)
    f(std::integral_constant<int, 64>(), std::integral_constant<int, 2>());
  else if (plan.width == lanes<T>)
    f(std::integral_constant<int, 64>(), std::integral_constant<int, 1>());
  else if (plan.width > 1)
    f(std::integral_constant<int, 16>(), std::integral_constant<int, 1>());
  else
    f(std::integral_constant<int, element>(), std::integral_constant<int, 1>());
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
          *reinterpret_cast<V*>(out + shares[s].lane) = pixel[shares[s].channel + c] - V{};
  };
  plan.pieces.visit(piece, copy, [](int64_t, int64_t) {});
}

/// The same for channels that are groups of their own, in whole blocks. With GatherPieces::fill, for any
/// number of channels, the convolution took 8 % longer.
template <class T>
void copy_source(const Gather& gather, const LanePlan<T>& plan, int64_t piece, const T* source, int64_t first,
                 T* buffer) {
  using V = Vector<T>;
  const auto copy = [&](int64_t to, int64_t from, int64_t pixels, int64_t step) {
    T* out = buffer + to * plan.block;
    const T* pixel = source + from * gather.source_pitch() + first;
    for (int64_t i = 0; i < pixels; ++i, pixel += step * gather.source_pitch(), out += plan.block)
      for (int64_t c = 0; c < plan.block; c += lanes<T>)
        *reinterpret_cast<V*>(out + c) = *reinterpret_cast<const V*>(pixel + c);
  };
  plan.pieces.visit(piece, copy, [](int64_t, int64_t) {});
}

template <class T>
void fill_block(const Gather& gather, const LanePlan<T>& plan, int64_t piece, const T* source, int64_t i,
                T* buffer) {
  const auto fill = LanePlan<T>::is_depthwise(gather)                                ? copy_source<T>
                    : gather.result_channels * static_cast<int64_t>(sizeof(T)) <= 16 ? spread_source<T, 16>
                                                                                     : spread_source<T, 64>;
  fill(gather, plan, piece, source, plan.first(i), buffer);
}

template <class T>
struct LaneOperands {
  const T* source;
  int64_t step;      ///< from a tap of a run to the next
  const T* weights;  ///< [taps][channels]
  int64_t depth;     ///< taps for each tap of the gather
  int64_t channels;  ///< of the result
};

/// Distances from a tile's pixels and rows to those that will be read and written next.
struct TileAhead {
  int64_t source = 0;
  int64_t rows = 0;
};

/// y[row] = start + the sum over taps for some pixels and one or two vectors.
template <class T, int bytes, int vectors, int pixel_count>
void sum_lanes(const LaneOperands<T>& in, const int64_t* bases, const std::vector<GatherRun>& runs,
               const TileAhead& ahead, const T* start, T* y, const int64_t* rows) {
  using V = Vector<T, bytes>;
  constexpr int64_t width = bytes / static_cast<int64_t>(sizeof(T));
  V total[pixel_count][vectors];
  const T* pixels[pixel_count];
  for_constants<pixel_count>([&](auto i) {
    pixels[i] = in.source + bases[i];
    for_constants<vectors>([&](auto v) {
      total[i][v] = *reinterpret_cast<const V*>(start + v * width);
      __builtin_prefetch(pixels[i] + ahead.source + v * width);
      __builtin_prefetch(y + (rows[i] + ahead.rows) * in.channels + v * width, 1);
    });
  });
  for (const GatherRun& run : runs) {
    const T* w = in.weights + run.tap * in.depth * in.channels;
    for (int64_t c = run.offset; c < run.offset + run.length; c += in.step, w += in.channels)
      for_constants<vectors>([&](auto v) {
        const V weight = *reinterpret_cast<const V*>(w + v * width);
        for_constants<pixel_count>(
            [&](auto i) { total[i][v] += *reinterpret_cast<const V*>(pixels[i] + c + v * width) * weight; });
      });
  }
  const int64_t channels = in.channels;
  for_constants<pixel_count>([&](auto i) {
    T* to = y + rows[i] * channels;
    for_constants<vectors>([&](auto v) { *reinterpret_cast<V*>(to + v * width) = total[i][v]; });
  });
}

/// Taps of a run that slide_lanes takes together.
constexpr int most_taps_together = 5;

/// total[i] += the sum over `taps` taps for pixels that lie `step` apart, as taps do: each element is loaded
/// once for all pixels that read it.
template <class T, int vectors, int taps, int pixel_count>
[[gnu::always_inline]] inline void slide_taps(const T* x, int64_t step, const T* w, int64_t channels,
                                              Vector<T> (&total)[pixel_count][vectors]) {
  using V = Vector<T>;
  V weight[taps][vectors];
#pragma GCC unroll 8
  for (int s = 0; s < taps; ++s)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      weight[s][v] = *reinterpret_cast<const V*>(w + s * channels + v * lanes<T>);
#pragma GCC unroll 16
  for (int q = 0; q < pixel_count + taps - 1; ++q)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const V value = *reinterpret_cast<const V*>(x + q * step + v * lanes<T>);
#pragma GCC unroll 8
      for (int s = 0; s < taps; ++s)
        if (q >= s && q - s < pixel_count) total[q - s][v] += value * weight[s][v];
    }
}

/// sum_lanes for pixels side by side: the same sums in the same order from fewer loads.
template <class T, int vectors, int pixel_count>
void slide_lanes(const LaneOperands<T>& in, const int64_t* bases, const std::vector<GatherRun>& runs,
                 const TileAhead& ahead, const T* start, T* y, const int64_t* rows) {
  using V = Vector<T>;
  V total[pixel_count][vectors];
  const T* first = in.source + bases[0];
  for_constants<pixel_count>([&](auto i) {
    for_constants<vectors>([&](auto v) {
      total[i][v] = *reinterpret_cast<const V*>(start + v * lanes<T>);
      __builtin_prefetch(first + i * in.step + ahead.source + v * lanes<T>);
      __builtin_prefetch(y + (rows[i] + ahead.rows) * in.channels + v * lanes<T>, 1);
    });
  });
  for (const GatherRun& run : runs) {
    const T* w = in.weights + run.tap * in.channels;
    const T* x = first + run.offset;
    for (int64_t left = run.length / in.step; left > 0;) {
      const int64_t some =
          left <= most_taps_together ? left : std::min<int64_t>(left - left / 2, most_taps_together);
      const auto take = [&](auto taps) {
        if (some == taps) slide_taps<T, vectors, taps, pixel_count>(x, in.step, w, in.channels, total);
      };
      take(std::integral_constant<int, 1>());
      take(std::integral_constant<int, 2>());
      take(std::integral_constant<int, 3>());
      take(std::integral_constant<int, 4>());
      take(std::integral_constant<int, 5>());
      left -= some;
      x += some * in.step;
      w += some * in.channels;
    }
  }
  for_constants<pixel_count>([&](auto i) {
    T* to = y + rows[i] * in.channels;
    for_constants<vectors>([&](auto v) { *reinterpret_cast<V*>(to + v * lanes<T>) = total[i][v]; });
  });
}

/// Pixels and taps of a run that are worth it.
constexpr std::size_t least_slide = 4;
constexpr int64_t least_run = 3;

/// slide_lanes for least_slide ... pixel_tile pixels.
template <class T, int vectors>
constexpr auto slide_lanes_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&slide_lanes<T, vectors, i + static_cast<int>(least_slide)>...};
}
(std::make_integer_sequence<int, pixel_tile - static_cast<int>(least_slide) + 1>());

/// sum_lanes for 1 ... pixel_tile pixels.
template <class T, int bytes, int vectors>
constexpr auto sum_lanes_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_lanes<T, bytes, vectors, i + 1>...};
}
(std::make_integer_sequence<int, pixel_tile>());

/// Of the pixels from the first on, how many lie `step` apart.
inline std::size_t side_by_side(const int64_t* bases, std::size_t count, int64_t step) {
  std::size_t i = 1;
  while (i < count && bases[i] - bases[i - 1] == step) ++i;
  return i;
}

/// All pixels of a piece for blocks `begin` to `end`. `in` and `y` are those of the first channel.
template <class T>
void sum_blocks(const LanePlan<T>& plan, int64_t begin, int64_t end, const LaneOperands<T>& in,
                const GatherPixels& pixels, const T* bias, T* y) {
  static constexpr T zeros[2 * lanes<T>] = {};
  const bool may_slide = plan.width == lanes<T>;
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const int64_t* bases = &pixels.bases[p];
      const int64_t* rows = &pixels.rows[p];
      std::size_t count = std::min<std::size_t>(pixel_tile, group.end - p);
      bool slide = may_slide && !group.runs.empty() && group.runs.front().length >= least_run * plan.step;
      if (slide) {
        const std::size_t line = side_by_side(bases, group.end - p, plan.step);
        slide = line >= least_slide;
        if (slide) {  // a line in tiles of about equal size
          const std::size_t tiles = (line + pixel_tile - 1) / pixel_tile;
          count = (line + tiles - 1) / tiles;
        }
      }
      TileAhead ahead;
      if (p + pixel_tile < pixels.bases.size() && !group.runs.empty())
        ahead = {
            bases[pixel_tile] - bases[0] + group.runs.back().offset + group.runs.back().length - plan.step,
            rows[pixel_tile] - rows[0]};
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = plan.first(i);
        LaneOperands<T> of_block = in;
        of_block.weights += first;
        if (plan.in_place) of_block.source += first;
        const T* start = bias != nullptr ? bias + first : zeros;
        if (slide) {
          const auto run = plan.vectors(i) == 2 ? slide_lanes_of<T, 2>[count - least_slide]
                                                : slide_lanes_of<T, 1>[count - least_slide];
          run(of_block, bases, group.runs, ahead, start, y + first, rows);
          continue;
        }
        by_vectors(plan, i, [&](auto bytes, auto vectors) {
          sum_lanes_of<T, bytes, vectors>[count - 1](of_block, bases, group.runs, ahead, start, y + first,
                                                     rows);
        });
      }
      p += count;
    }
}

/// Weights as [taps in the gather's order][channel of a group's source][result channels].
template <class T>
std::shared_ptr<std::byte> pack_lanes(const Gather& gather, const GatherWeights<T>& weights) {
  auto memory = scratch<T>(gather.depth() * gather.result_pitch());
  const auto taps = static_cast<int64_t>(weights.taps.size());
  // Some groups at a time, whose weights stay in the first-level cache for all taps.
  parallel_for(
      0, gather.groups, std::max<int64_t>(weight_bytes / (gather.depth() * gather.result_channels * 8), 1),
      [&](int64_t begin, int64_t end) {
        for (int64_t tap = 0; tap < taps; ++tap)
          for (int64_t c = 0; c < gather.source_channels; ++c) {
            const T* from =
                weights.data + weights.taps[static_cast<std::size_t>(tap)] * weights.tap + c * weights.source;
            T* to = elements_of<T>(memory) + (tap * gather.source_channels + c) * gather.result_pitch();
            if (gather.result_channels == 1) {
              PLEAT_INDEPENDENT_ITERATIONS
              for (int64_t g = begin; g < end; ++g) to[g] = from[g * weights.group];
              continue;
            }
            for (int64_t g = begin; g < end; ++g)
              for (int64_t k = 0; k < gather.result_channels; ++k)
                to[g * gather.result_channels + k] = from[g * weights.group + k * weights.result];
          }
      });
  return memory;
}

template <class T>
LanePlan<T> result_plan(const Gather& gather) {
  return {gather, gather.pixels_wanted(most_pixels)};
}

/// Sums of some taps of a block over some pixels.
template <class T>
struct TapSums {
  const T* x;
  const int64_t* bases;
  const int64_t* offsets;  ///< of the taps
  const T* dy;
  const int64_t* rows;
  int64_t channels;  ///< of dy
  std::size_t pixels;
  T* sums;              ///< [taps][channels]
  const int64_t* taps;  ///< rows of `sums`
  int64_t done;         ///< lanes that the block before has
  bool read_on;         ///< whether the block behind is the next to be read
};

template <class T, int bytes, int vectors, int taps>
void sum_taps(const TapSums<T>& in) {
  using V = Vector<T, bytes>;
  constexpr int64_t width = bytes / static_cast<int64_t>(sizeof(T));
  V total[taps][vectors];
  for_constants<taps>([&](auto t) { for_constants<vectors>([&](auto v) { total[t][v] = V{}; }); });
  for (std::size_t p = 0; p < in.pixels; ++p) {
    const T* x = in.x + in.bases[p];
    const T* dy = in.dy + in.rows[p] * in.channels;
    if (in.read_on)
      for_constants<vectors>([&](auto v) {
        __builtin_prefetch(dy + (vectors + v) * width, 0, 2);  // to the second-level cache
        __builtin_prefetch(x + in.offsets[0] + (vectors + v) * width, 0, 2);
      });
    V gradient[vectors];
    for_constants<vectors>([&](auto v) { gradient[v] = *reinterpret_cast<const V*>(dy + v * width); });
    for_constants<taps>([&](auto t) {
      const T* element = x + in.offsets[t];
      for_constants<vectors>(
          [&](auto v) { total[t][v] += *reinterpret_cast<const V*>(element + v * width) * gradient[v]; });
    });
  }
  for_constants<taps>([&](auto t) {
    T* sum = in.sums + in.taps[t] * in.channels;
    if (in.done == 0) {
      for_constants<vectors>([&](auto v) { *reinterpret_cast<V*>(sum + v * width) += total[t][v]; });
      return;
    }
    T part[vectors * width];
    for_constants<vectors>([&](auto v) { *reinterpret_cast<V*>(part + v * width) = total[t][v]; });
    for (int64_t i = in.done; i < vectors * width; ++i) sum[i] += part[i];
  });
}

/// sum_taps for 1 ... tap_tile taps.
template <class T, int bytes, int vectors>
constexpr auto sum_taps_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_taps<T, bytes, vectors, i + 1>...};
}
(std::make_integer_sequence<int, tap_tile>());

/// Adds a piece's products to the sums of a block.
template <class T, int bytes, int vectors>
void add_products(const LanePlan<T>& plan, const GatherPixels& pixels, TapSums<T> in) {
  std::vector<int64_t> offsets, taps;
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups) {
    offsets.clear();
    taps.clear();
    for (const GatherRun& run : group.runs)
      for (int64_t i = 0; i * plan.step < run.length; ++i) {
        offsets.push_back(run.offset + i * plan.step);
        taps.push_back(run.tap * plan.depth + i);
      }
    TapSums<T> of_group = in;
    of_group.bases += p;
    of_group.rows += p;
    of_group.pixels = group.end - p;
    p = group.end;
    const auto count = static_cast<int64_t>(taps.size());
    const int64_t tiles = ceil_div(count, tap_tile);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = count * tile / tiles;
      of_group.read_on = in.read_on && tile == 0;
      of_group.offsets = offsets.data() + first;
      of_group.taps = taps.data() + first;
      const int64_t of_tile = count * (tile + 1) / tiles - first;
      sum_taps_of<T, bytes, vectors>[static_cast<std::size_t>(of_tile - 1)](of_group);
    }
  }
}

/// The gradient of the weight: blocks of channels, and chunks of pieces where these are few tasks.
template <class T>
struct LaneSums {
  LanePlan<T> plan;
  int64_t together;  ///< blocks of a task, side by side in memory
  int64_t chunks;
  int64_t size;  ///< of one chunk's sums

  explicit LaneSums(const Gather& gather)
      : plan(gather, sum_pixels),
        together(std::clamp<int64_t>(plan.blocks() * plan.pieces.count() / tasks_wanted, 1, most_together)),
        chunks(std::min(plan.pieces.count(), ceil_div(tasks_wanted, tasks()))),
        size(gather.depth() * plan.channels) {}
  /// Of a chunk.
  int64_t tasks() const { return ceil_div(plan.blocks(), together); }
};

}  // namespace

template <class T>
GatherTasks multiply_lanes(const Gather& gather, const T* source, const GatherWeights<T>& weights,
                           const T* bias, T* y) {
  const LanePlan<T> plan = result_plan<T>(gather);
  const auto packed = pack_lanes(gather, weights);
  // In place, blocks of a pixel one after the other, as they lie in memory, as many as have weights for half
  // of the first-level cache. The last one belongs to the task of the block before, of which it computes a
  // part.
  const int64_t fitting = weight_bytes / (plan.block * gather.depth() * static_cast<int64_t>(sizeof(T)));
  const int64_t together = plan.in_place ? std::max<int64_t>(fitting, 1) : 1;
  const int64_t starts = std::max<int64_t>(plan.blocks() - 1, 1);
  const int64_t parts = std::min(starts, ceil_div(tasks_wanted, plan.pieces.count()));
  const auto run = [=](int64_t task) {
    const auto memory = scratch<T>(plan.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    const int64_t piece = task / parts;
    const int64_t part = task % parts;
    const int64_t begin = starts * part / parts;
    const int64_t end = part + 1 == parts ? plan.blocks() : starts * (part + 1) / parts;
    plan.pieces.list(piece, plan.depth * plan.step, pixels);
    const LaneOperands<T> in{plan.in_place ? source : buffer, plan.step, elements_of<T>(packed), plan.depth,
                             plan.channels};
    for (int64_t i = begin; i < end; i += together) {
      if (!plan.in_place) fill_block(gather, plan, piece, source, i, buffer);
      sum_blocks(plan, i, std::min(i + together, end), in, pixels, bias, y);
    }
  };
  return {plan.pieces.count() * parts, run};
}

template <class T>
GatherMemory lanes_memory(const Gather& gather) {
  constexpr int64_t element = sizeof(T);
  return {gather.depth() * gather.result_pitch() * element,
          result_plan<T>(gather).buffer_elements() * element};
}

template <class T>
void lanes_weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw) {
  const LaneSums<T> all(gather);
  const LanePlan<T>& plan = all.plan;
  const auto partials = scratch<T>(all.chunks * all.size);
  T* sums = elements_of<T>(partials);
  parallel_chunks(all.tasks() * all.chunks, [&](int64_t task) {
    const auto memory = scratch<T>(plan.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    const int64_t chunk = task % all.chunks;
    const int64_t begin = task / all.chunks * all.together;
    const int64_t end = std::min(begin + all.together, plan.blocks());
    T* sums_of_chunk = sums + chunk * all.size;
    const int64_t from = begin * plan.block;
    for (int64_t tap = 0; tap < gather.depth(); ++tap)
      std::fill_n(sums_of_chunk + tap * plan.channels + from,
                  std::min(end * plan.block, plan.channels) - from, T(0));
    const int64_t pieces = plan.pieces.count();
    for (int64_t piece = pieces * chunk / all.chunks; piece < pieces * (chunk + 1) / all.chunks; ++piece) {
      plan.pieces.list(piece, plan.depth * plan.step, pixels);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = plan.first(i);
        if (!plan.in_place) fill_block(gather, plan, piece, x, i, buffer);
        TapSums<T> in{};
        in.x = plan.in_place ? x + first : buffer;
        in.bases = pixels.bases.data();
        in.dy = dy + first;
        in.rows = pixels.rows.data();
        in.channels = plan.channels;
        in.sums = sums_of_chunk + first;
        in.done = i * plan.block - first;
        in.read_on = i + 1 < end && plan.in_place;
        by_vectors(plan, i,
                   [&](auto bytes, auto vectors) { add_products<T, bytes, vectors>(plan, pixels, in); });
      }
    }
  });
  sum_transposed(sums, all.chunks, all.size, gather.depth(), plan.channels, plan.channels, dw);
}

template <class T>
int64_t lanes_weight_workspace(const Gather& gather) {
  const LaneSums<T> all(gather);
  return (num_threads() * all.plan.buffer_elements() + all.chunks * all.size) *
         static_cast<int64_t>(sizeof(T));
}

#define PLEAT_LANES(T)                                                                                 \
  template GatherTasks multiply_lanes(const Gather&, const T*, const GatherWeights<T>&, const T*, T*); \
  template GatherMemory lanes_memory<T>(const Gather&);                                                \
  template void lanes_weight_gradient(const Gather&, const T*, const T*, T*);                          \
  template int64_t lanes_weight_workspace<T>(const Gather&);
PLEAT_LANES(float)
PLEAT_LANES(double)
#undef PLEAT_LANES

}  // namespace pleat::ops
