#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/cpu/direct_lanes.h"

/// Convolution in groups of 2, 4, 8 or a vector's channels (ResNeXt), where a panel of one group would leave
/// lanes idle or have few sums. Vectors lie along the channels of some groups, and the source is read where
/// it lies: for each channel of a group, a shuffle gives every lane its group's element, which is multiplied
/// with the weights of the lane. Of pixels side by side (stride 1) each shuffled vector serves all pixels of
/// a tile that read it.

namespace pleat::ops {
namespace {

using namespace direct_lanes;

template <class T>
struct GroupOperands {
  const T* source;
  const T* weights;  ///< [taps][channel of a group][lane]
  int64_t channels;  ///< of a pixel
};

/// Channel c of each group in every lane of it; of a group of all lanes c is counted when it runs.
template <class T, int group, class C>
[[gnu::always_inline]] inline Vector<T> channel_of(const T* x, C c) {
  if constexpr (group == lanes<T>) {
    return x[c] - Vector<T>{};
  } else {
    Vector<T> value;
    spread_channel<T, group, c>(simd::load(x), value);
    return value;
  }
}
template <int group, int lane_count, class F>
[[gnu::always_inline]] inline void for_channels(const F& f) {
  if constexpr (group == lane_count)
    for (int c = 0; c < group; ++c) f(c);
  else
    simd::for_constants<group>(f);
}

/// total[i] += the products of `taps` taps side by side, with channel c of each group, for pixels that lie
/// side by side, too.
template <class T, int group, int taps, int pixel_count, class C>
[[gnu::always_inline]] inline void slide_channel(const T* x, const T* w, int64_t channels, C c,
                                                 Vector<T> (&total)[pixel_count]) {
  using V = Vector<T>;
  V weight[taps];
#pragma GCC unroll 8
  for (int s = 0; s < taps; ++s) weight[s] = simd::load(w + (s * group + c) * lanes<T>);
#pragma GCC unroll 16
  for (int q = 0; q < pixel_count + taps - 1; ++q) {
    const V value = channel_of<T, group>(x + q * channels, c);
#pragma GCC unroll 8
    for (int s = 0; s < taps; ++s)
      if (q >= s && q - s < pixel_count) total[q - s] += value * weight[s];
  }
}

/// The same for one tap and pixels anywhere.
template <class T, int group, int pixel_count, class C>
[[gnu::always_inline]] inline void add_channel(const T* const (&pixels)[pixel_count], int64_t offset,
                                               const T* w, C c, Vector<T> (&total)[pixel_count]) {
  const Vector<T> weight = simd::load(w + c * lanes<T>);
#pragma GCC unroll 16
  for (int i = 0; i < pixel_count; ++i) total[i] += channel_of<T, group>(pixels[i] + offset, c) * weight;
}

/// y[row] = start + the sum over taps and channels of a group for a tile of pixels and one vector.
template <class T, int group, bool slide, int pixel_count>
void sum_groups(const GroupOperands<T>& in, const int64_t* bases, const std::vector<GatherRun>& runs,
                const TileAhead& ahead, const T* start, T* y, const int64_t* rows) {
  using V = Vector<T>;
  V total[pixel_count];
  const T* pixels[pixel_count];
#pragma GCC unroll 16
  for (int i = 0; i < pixel_count; ++i) {
    total[i] = simd::load(start);
    pixels[i] = in.source + bases[i];
    __builtin_prefetch(pixels[i] + ahead.source);
    __builtin_prefetch(y + (rows[i] + ahead.rows) * in.channels, 1);
  }
  for (const GatherRun& run : runs) {
    const T* w = in.weights + run.tap * group * lanes<T>;
    int64_t done = 0;
    if constexpr (slide)
      for (; done + 3 * in.channels <= run.length; done += 3 * in.channels, w += 3 * group * lanes<T>)
        for_channels<group, lanes<T>>([&](auto c) __attribute__((always_inline)) {
          slide_channel<T, group, 3, pixel_count>(pixels[0] + run.offset + done, w, in.channels, c, total);
        });
    for (; done < run.length; done += in.channels, w += group * lanes<T>)
      for_channels<group, lanes<T>>([&](auto c) __attribute__((always_inline)) {
        add_channel<T, group, pixel_count>(pixels, run.offset + done, w, c, total);
      });
  }
#pragma GCC unroll 16
  for (int i = 0; i < pixel_count; ++i) simd::store(y + rows[i] * in.channels, total[i]);
}

/// Pixels of a tile. Without shuffles it takes the sums of more to keep the processor busy.
template <class T, int group>
constexpr int most_tile = simd::registers == 32 && lanes<T> == group ? 14 : pixel_tile;

/// sum_groups for 1 ... most_tile pixels.
template <class T, int group, bool slide>
constexpr auto sum_groups_of = []<int... i>(std::integer_sequence<int, i...>) {
  return std::array{&sum_groups<T, group, slide, i + 1>...};
}
(std::make_integer_sequence<int, most_tile<T, group>>());

/// All pixels of a piece for the vectors from channel `begin` to `end`.
template <class T, int group>
void sum_vectors(const GroupOperands<T>& in, int64_t depth, int64_t begin, int64_t end,
                 const GatherPixels& pixels, const T* bias, T* y) {
  static constexpr T zeros[lanes<T>] = {};
  std::size_t p = 0;
  for (const GatherPixels::Group& same_taps : pixels.groups)
    while (p < same_taps.end) {
      const std::vector<GatherRun>& runs = same_taps.runs;
      const int64_t* bases = &pixels.bases[p];
      const int64_t* rows = &pixels.rows[p];
      const Tile tile = next_tile(bases, same_taps.end - p, runs, in.channels, most_tile<T, group>);
      const auto run = tile.slide ? sum_groups_of<T, group, true>[tile.pixels - 1]
                                  : sum_groups_of<T, group, false>[tile.pixels - 1];
      const TileAhead ahead = what_is_ahead(pixels, p, runs, in.channels);
      for (int64_t c = begin; c < end; c += lanes<T>)
        run({in.source + c, in.weights + c * depth, in.channels}, bases, runs, ahead,
            bias != nullptr ? bias + c : zeros, y + c, rows);
      p += tile.pixels;
    }
}

/// Pieces of which all channels stay in the second-level cache, as vectors that lie side by side are computed
/// one after the other.
GatherPieces pieces_of(const Gather& gather) {
  constexpr int64_t fewest = 64;
  return GatherPieces::in_place(gather,
                                gather.pixels_wanted(buffer_elements_wanted / gather.result_pitch(), fewest));
}

template <class T>
bool groups_suit(const Gather& gather) {
  // Apart, pixels of a vector's group share nothing that panels of one group do not.
  const bool slides = gather.dims[2].source_step == 1;
  const bool is_vector = gather.source_channels == lanes<T> && gather.result_channels == lanes<T>;
  return vectors_hold_groups<T>(gather) || (gather.groups > 1 && is_vector && slides);
}

template <class T>
GatherTasks<T> group_tasks(const Gather& gather, const GatherWeights<T>& weights) {
  GatherPieces pieces = pieces_of(gather);
  const auto packed = pack_lanes(gather, weights, lanes<T>);
  const int64_t channels = gather.result_pitch();
  if (weights.shared != nullptr) pieces.keep_lists(channels);
  const int64_t vectors = channels / lanes<T>;
  const int64_t parts = std::min(vectors, ceil_div(tasks_wanted, pieces.count()));
  // Vectors of a pixel one after the other, as many as have weights for half of the first-level cache.
  const int64_t fitting = weight_bytes / (gather.depth() * lanes<T> * static_cast<int64_t>(sizeof(T)));
  const int64_t together = std::max<int64_t>(fitting, 1) * lanes<T>;
  constexpr int most = lanes<T>;
  const auto sum = gather.source_channels == 2   ? sum_vectors<T, 2>
                   : gather.source_channels == 4 ? sum_vectors<T, std::min(4, most)>
                   : gather.source_channels == 8 ? sum_vectors<T, std::min(8, most)>
                                                 : sum_vectors<T, most>;
  const auto run = [=](int64_t task, const GatherOperands<T>& operands) {
    const int64_t part = task % parts;
    const int64_t end = vectors * (part + 1) / parts * lanes<T>;
    const GatherPixels& pixels = pieces.listed(task / parts, channels);
    for (int64_t c = vectors * part / parts * lanes<T>; c < end; c += together) {
      const int64_t stop = std::min(c + together, end);
      sum({operands.source, elements_of<T>(packed), channels}, gather.depth(), c, stop, pixels, operands.bias,
          operands.y);
      const RowValues<T> values{operands.y + c, channels, false};
      const auto rows = static_cast<int64_t>(pixels.rows.size());
      operands.completion.add_sums(task / parts, c, stop - c, values, pixels.rows.data(), channels, rows);
      operands.completion.finish_rows(c, stop - c, values, pixels.rows.data(), channels, rows);
    }
  };
  return {pieces.count() * parts, run, pieces.count()};
}

template <class T>
GatherMemory groups_memory(const Gather& gather) {
  return {gather.depth() * gather.result_pitch() * static_cast<int64_t>(sizeof(T)), 0};
}

}  // namespace

template <class T>
DirectKernel<T> groups_kernel() {
  return {groups_suit<T>, group_tasks<T>, groups_memory<T>, true};
}
template DirectKernel<float> groups_kernel();
template DirectKernel<double> groups_kernel();

}  // namespace pleat::ops
