#include <algorithm>
#include <span>
#include <vector>

#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/cpu/direct_lanes.h"

/// The gradient of the weight lane by lane: a tile of taps stays in registers while it goes through the
/// pixels of a piece, of which a product loads one vector of the source. Of groups of 2, 4 or 8 channels,
/// which some make a vector, the lanes of the source are multiplied with each channel of their group in dy:
/// a shuffle brings it to all of them, and a tap has a sum for each.

namespace pleat::ops {
namespace {

using namespace direct_lanes;
using simd::for_constants;

/// Taps whose sums a tile of the gradient of the weight has: with so many vectors of each, or a sum for each
/// channel of a group, most registers.
constexpr int64_t tap_tile(int vectors, int group) {
  if (group > 1) return (simd::registers - 3) / (group + 1);
  return vectors == 3 ? 9 : 10;
}
/// The same for the gradient of the weight, and how many blocks of channels it takes one after the other, so
/// that what lies side by side is read at about the same time.
constexpr int64_t sum_pixels = 512;
constexpr int64_t most_together = 4;

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
  T* sums;              ///< [taps][channel of a group][channels]
  const int64_t* taps;  ///< in `sums`
  int64_t done;         ///< lanes that the block before has
  // Of the block behind, if it is the next to be read: its dy, and offsets of taps that read all of its x.
  bool fetches_dy;
  std::span<const int64_t> fetched;
};

template <class T, int bytes, int vectors, int group, int taps>
void sum_taps(const TapSums<T>& in) {
  using V = Vector<T, bytes>;
  constexpr int64_t width = bytes / static_cast<int64_t>(sizeof(T));
  V total[taps * group][vectors] = {};
  for (std::size_t p = 0; p < in.pixels; ++p) {
    const T* x = in.x + in.bases[p];
    const T* dy = in.dy + in.rows[p] * in.channels;
    // To the second-level cache. Depthwise, where a tap has few products, more than one would not pay.
    if (in.fetches_dy)
      for_constants<vectors>([&](auto v) {
        __builtin_prefetch(dy + (vectors + v) * width, 0, 2);
        if (group == 1) __builtin_prefetch(x + in.offsets[0] + (vectors + v) * width, 0, 2);
      });
    if constexpr (group > 1)
      for (const int64_t offset : in.fetched) __builtin_prefetch(x + offset + width, 0, 2);
    V gradient[vectors];
    for_constants<vectors>([&](auto v) { gradient[v] = simd::load<bytes>(dy + v * width); });
    if constexpr (group > 1) {
      V source[taps];
      for_constants<taps>([&](auto t) { source[t] = simd::load<bytes>(x + in.offsets[t]); });
      for_constants<group>([&](auto k) {
        V of_channel;
        spread_channel<T, group, k>(gradient[0], of_channel);
        for_constants<taps>([&](auto t) { total[t * group + k][0] += source[t] * of_channel; });
      });
    } else {
      for_constants<taps>([&](auto t) {
        const T* element = x + in.offsets[t];
        for_constants<vectors>(
            [&](auto v) { total[t][v] += simd::load<bytes>(element + v * width) * gradient[v]; });
      });
    }
  }
  for_constants<taps * group>([&](auto t) {
    T* sum = in.sums + (in.taps[t / group] * group + t % group) * in.channels;
    if (in.done <= 0) {  // it is never below; of == 0 g++ 12 says that the loop below leaves `part`
      for_constants<vectors>([&](auto v) {
        T* const at = sum + v * width;
        simd::store<bytes>(at, simd::load<bytes>(at) + total[t][v]);
      });
      return;
    }
    T part[vectors * width];
    for_constants<vectors>([&](auto v) { simd::store<bytes>(part + v * width, total[t][v]); });
    for (int64_t i = in.done; i < vectors * width; ++i) sum[i] += part[i];
  });
}

/// sum_taps for 1 ... tap_tile(vectors, group) taps.
template <class T, int bytes, int vectors, int group>
constexpr auto sum_taps_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_taps<T, bytes, vectors, group, i + 1>...};
}
(std::make_integer_sequence<int, tap_tile(vectors, group)>());

/// Of each tap, whether what it reads is fetched ahead: those whose elements no tap before has read, as many
/// in a dimension as its source steps.
std::vector<bool> taps_to_fetch(const Gather& gather) {
  std::vector<bool> fetched;
  const auto is_first = [&](std::size_t d, std::size_t tap) {
    return static_cast<int64_t>(tap) < gather.dims[d].source_step;
  };
  for (std::size_t t = 0; t < gather.dims[0].taps.size(); ++t)
    for (std::size_t r = 0; r < gather.dims[1].taps.size(); ++r)
      for (std::size_t s = 0; s < gather.dims[2].taps.size(); ++s)
        fetched.push_back(is_first(0, t) && is_first(1, r) && is_first(2, s));
  return fetched;
}

/// Adds a piece's products to the sums of a block; `fetched` by tap, if there is another block behind.
template <class T, int bytes, int vectors, int group>
void add_products(const LanePlan<T>& plan, const GatherPixels& pixels, const std::vector<bool>& fetched,
                  TapSums<T> in) {
  std::vector<int64_t> offsets, taps, ahead;
  std::size_t p = 0;
  for (const GatherPixels::Group& same_taps : pixels.groups) {
    offsets.clear();
    taps.clear();
    for (const GatherRun& run : same_taps.runs)
      for (int64_t i = 0; i * plan.step < run.length; ++i) {
        offsets.push_back(run.offset + i * plan.step);
        taps.push_back(run.tap * plan.depth + i);
      }
    TapSums<T> of_pixels = in;
    of_pixels.bases += p;
    of_pixels.rows += p;
    of_pixels.pixels = same_taps.end - p;
    p = same_taps.end;
    const auto count = static_cast<int64_t>(taps.size());
    const int64_t tiles = ceil_div(count, tap_tile(vectors, group));
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = count * tile / tiles;
      const int64_t of_tile = count * (tile + 1) / tiles - first;
      of_pixels.offsets = offsets.data() + first;
      of_pixels.taps = taps.data() + first;
      of_pixels.fetches_dy = in.fetches_dy && tile == 0;
      ahead.clear();
      for (int64_t i = first; in.fetches_dy && i < first + of_tile; ++i)
        if (const auto at = static_cast<std::size_t>(i); fetched[static_cast<std::size_t>(taps[at])])
          ahead.push_back(offsets[at]);
      of_pixels.fetched = ahead;
      sum_taps_of<T, bytes, vectors, group>[static_cast<std::size_t>(of_tile - 1)](of_pixels);
    }
  }
}

/// Where a vector holds groups, each channel is a lane.
Gather by_channels(Gather gather, int64_t group) {
  gather.groups *= group;
  gather.source_channels /= group;
  gather.result_channels /= group;
  return gather;
}

/// Blocks of channels, and chunks of pieces where these are few tasks.
template <class T>
struct LaneSums {
  int64_t group;  ///< channels of a group, of which a vector holds some; else 1
  LanePlan<T> plan;
  int64_t together;  ///< blocks of a task, side by side in memory
  int64_t chunks;
  int64_t size;               ///< of one chunk's sums
  std::vector<bool> fetched;  ///< taps_to_fetch

  explicit LaneSums(const Gather& gather)
      : group(vectors_hold_groups<T>(gather) ? gather.source_channels : 1),
        plan(by_channels(gather, group), sum_pixels, group == 1),
        together(std::clamp<int64_t>(plan.blocks() * plan.pieces.count() / tasks_wanted, 1, most_together)),
        chunks(std::min(plan.pieces.count(), ceil_div(tasks_wanted, tasks()))),
        size(gather.depth() * plan.channels),
        fetched(taps_to_fetch(gather)) {}
  /// Of a chunk.
  int64_t tasks() const { return ceil_div(plan.blocks(), together); }
};

/// Adds the products of pixels to the sums of block i.
template <class T>
void add_block(const LaneSums<T>& all, int64_t i, const GatherPixels& pixels, TapSums<T> in) {
  const LanePlan<T>& plan = all.plan;
  if (all.group == 1)
    return by_vectors(plan, i, [&](auto bytes, auto vectors) {
      add_products<T, bytes, vectors, 1>(plan, pixels, all.fetched, in);
    });
  constexpr int whole = simd::register_bytes, most = lanes<T> / 2;
  const auto add = all.group == 2   ? add_products<T, whole, 1, 2>
                   : all.group == 4 ? add_products<T, whole, 1, std::min(4, most)>
                                    : add_products<T, whole, 1, std::min(8, most)>;
  for (int64_t v = 0; v < plan.vectors(i); ++v) {
    add(plan, pixels, all.fetched, in);
    in.x += lanes<T>;
    in.dy += lanes<T>;
    in.sums += lanes<T>;
  }
}

/// dw [groups, group, taps, group] from chunks of sums [taps, group, groups, group].
template <class T>
void sum_grouped(const LaneSums<T>& all, const T* sums, int64_t taps, T* dw) {
  const int64_t group = all.group, channels = all.plan.channels;
  parallel_for(0, channels, ceil_div(8192, all.chunks * taps * group), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < group; ++c) {
          const T* from = sums + (tap * group + k % group) * channels + k / group * group + c;
          T total = *from;
          for (int64_t chunk = 1; chunk < all.chunks; ++chunk) total += from[chunk * all.size];
          dw[(k * taps + tap) * group + c] = total;
        }
  });
}

template <class T>
bool lanes_suit(const Gather& gather) {
  return gather.groups > 1 &&
         (gather.source_channels == 1 || gather.source_channels * gather.result_channels <= 16 ||
          vectors_hold_groups<T>(gather));
}

template <class T>
void weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw) {
  const LaneSums<T> all(gather);
  const LanePlan<T>& plan = all.plan;
  const auto partials = scratch<T>(all.chunks * all.size);
  T* sums = elements_of<T>(partials);
  parallel_chunks(all.tasks() * all.chunks, [&](int64_t task) {
    const auto memory = scratch<T>(plan.buffer_elements());
    T* buffer = elements_of<T>(memory);
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
      const GatherPixels& pixels = plan.pieces.listed(piece, plan.depth * plan.step);
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
        in.fetches_dy = i + 1 < end && plan.in_place;
        add_block(all, i, pixels, in);
      }
    }
  });
  if (all.group > 1)
    sum_grouped(all, sums, gather.taps(), dw);
  else
    sum_transposed(sums, all.chunks, all.size, gather.depth(), plan.channels, plan.channels, dw);
}

template <class T>
int64_t weight_workspace(const Gather& gather) {
  const LaneSums<T> all(gather);
  return (num_threads() * all.plan.buffer_elements() + all.chunks * all.size) *
         static_cast<int64_t>(sizeof(T));
}

}  // namespace

template <class T>
DirectWeightKernel<T> lanes_weight_kernel() {
  return {lanes_suit<T>, weight_gradient<T>, weight_workspace<T>};
}
template DirectWeightKernel<float> lanes_weight_kernel();
template DirectWeightKernel<double> lanes_weight_kernel();

}  // namespace pleat::ops
