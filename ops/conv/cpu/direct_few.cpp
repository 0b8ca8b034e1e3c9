#include <algorithm>
#include <bit>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Vectors lie along the source's channels: one sum for each pair of a pixel and a result channel, whose
/// lanes are added at the end. The source is copied with its padding, or, of 1x1 convolutions, read where it
/// lies: then pixels some tiles ahead are fetched into the second-level cache meanwhile. (Fetched into the
/// first, they would wait for its few outstanding misses: 1x1 from 64 to 2 channels out of memory, one thread
/// of a Zen 4, 0.9 ms against 1.8 ms.)

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

/// Pixels of a piece that is read in place.
constexpr int64_t most_pixels = 4096;

template <class T>
struct FewChannels {
  int64_t sums;  ///< of a pixel: a power of two
  int64_t read;  ///< elements of a source pixel, in whole vectors
  bool in_place;

  explicit FewChannels(const Gather& gather)
      : sums(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(gather.result_channels)))),
        read(round_up(gather.source_channels, lanes<T>)),
        in_place(gather.taps() == 1 && read == gather.source_channels) {}

  GatherPieces pieces(const Gather& gather) const {
    if (in_place) return GatherPieces::in_place(gather, gather.pixels_wanted(most_pixels));
    return GatherPieces::for_results(gather, buffer_elements_wanted, read);
  }
};

/// Weights as [group][depth in vectors][sum][lane], zeros for channels that are not there.
template <class T>
std::shared_ptr<std::byte> pack_rows(const Gather& gather, const GatherWeights<T>& weights,
                                     const FewChannels<T>& few) {
  const int64_t elements = gather.groups * gather.taps() * few.read * few.sums;
  return weights.packed(elements, [&](T* out) {
    for (int64_t i = 0; i < gather.groups * gather.taps(); ++i) {
      const T* from = weights.data + i / gather.taps() * weights.group +
                      weights.taps[static_cast<std::size_t>(i % gather.taps())] * weights.tap;
      for (int64_t first = 0; first < few.read; first += lanes<T>)
        for (int64_t k = 0; k < few.sums; ++k)
          for (int64_t c = first; c < first + lanes<T>; ++c)
            *out++ = c < gather.source_channels && k < gather.result_channels
                         ? from[c * weights.source + k * weights.result]
                         : T(0);
    }
  });
}

/// Lane i of the result is the sum of vector i's lanes.
template <class T>
Vector<T> add_lanes(Vector<T>* vectors) {
  // Each step adds the interleaved halves of two vectors: it leaves half as many vectors.
  for (std::size_t count = lanes<T>; count > 1; count /= 2)
    for (std::size_t i = 0; i < count / 2; ++i) {
      Vector<T> lower, upper;
      simd::interleave<T>(vectors[i], vectors[i + count / 2], lower, upper);
      vectors[i] = lower + upper;
    }
  return vectors[0];
}

/// All pixels of a piece times the rows of weights, of which `tap` elements are a tap's. Rows of y are
/// `pitch` elements apart. `fetch` elements of each of pixels some tiles ahead are fetched meanwhile.
template <class T, int sums>
void multiply_rows(const GatherPixels& pixels, const T* buffer, const T* weights, int64_t tap, const T* bias,
                   int64_t channels, int64_t pitch, int64_t fetch, T* y) {
  using V = Vector<T>;
  constexpr int width = static_cast<int>(lanes<T>);
  constexpr int tile = std::max(width / sums, 1);  // pixels, whose sums are whole vectors
  // As many as take about as long as memory needs.
  constexpr int64_t elements_ahead = 2048;
  const auto pixels_ahead = static_cast<std::size_t>(
      fetch > 0 ? round_up(ceil_div(elements_ahead, fetch), static_cast<int64_t>(tile)) : 0);
  T start[sums] = {};
  // There are no more channels than sums, which g++ 14 does not see.
  if (bias != nullptr) std::copy_n(bias, std::min<int64_t>(channels, sums), start);
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const std::size_t count = std::min<std::size_t>(tile, group.end - p);
      const T* from[tile];
      for (std::size_t i = 0; i < tile; ++i) from[i] = buffer + pixels.bases[p + std::min(i, count - 1)];
      const std::size_t ahead = p + pixels_ahead;
      if (fetch > 0 && ahead < pixels.bases.size())
        for (std::size_t i = 0; i < tile; ++i)
          for (int64_t c = 0; c < fetch; c += line_elements<T>)
            __builtin_prefetch(from[i] + pixels.bases[ahead] - pixels.bases[p] + c, 0, 2);
      V total[tile * sums] = {};
      for (const GatherRun& run : group.runs) {
        const T* w = weights + run.tap * tap;
        for (int64_t c = run.offset; c < run.offset + run.length; c += lanes<T>, w += sums * lanes<T>)
          for_constants<tile>([&](auto i) {
            const V x = simd::load(from[i] + c);
            for_constants<sums>([&](auto k) { total[i * sums + k] += x * simd::load(w + k * lanes<T>); });
          });
      }
      T added[tile * sums];
      for (int i = 0; i < tile * sums; i += width) simd::store(added + i, add_lanes<T>(total + i));
      for (std::size_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < channels; ++k)
          y[pixels.rows[p + i] * pitch + k] = start[k] + added[static_cast<int64_t>(i) * sums + k];
      p += count;
    }
}

/// Whether this takes less work than panels: adding the lanes counts as much as three products, and panels of
/// few channels have vectors of half the size or less, in half the time.
template <class T>
bool few_channels_suit(const Gather& gather) {
  const FewChannels<T> few(gather);
  return gather.result_channels <= most_few_channels &&
         2 * few.sums * (few.read / lanes<T> * gather.taps() + 3) < gather.depth();
}

template <class T>
GatherTasks<T> few_channels_tasks(const Gather& gather, const GatherWeights<T>& weights) {
  const FewChannels<T> few(gather);
  GatherPieces pieces = few.pieces(gather);
  if (weights.shared != nullptr) pieces.keep_lists(gather.source_channels);
  const auto packed = pack_rows(gather, weights, few);
  const auto multiply = few.sums == 1   ? multiply_rows<T, 1>
                        : few.sums == 2 ? multiply_rows<T, 2>
                        : few.sums == 4 ? multiply_rows<T, 4>
                                        : multiply_rows<T, 8>;
  const int64_t tap_elements = few.read * few.sums;
  const auto run = [=](int64_t task, const GatherOperands<T>& operands) {
    const auto memory = few.in_place ? nullptr : scratch<T>(pieces.buffer_elements());
    T* buffer = elements_of<T>(memory);
    const int64_t group = task % gather.groups;
    const int64_t first = group * gather.result_channels;
    const int64_t first_source = group * gather.source_channels;
    if (!few.in_place)
      pieces.fill(task / gather.groups, operands.source, first_source, gather.source_channels, buffer);
    const GatherPixels& pixels = pieces.listed(task / gather.groups, gather.source_channels);
    multiply(pixels, few.in_place ? operands.source + first_source : buffer,
             elements_of<T>(packed) + group * gather.taps() * tap_elements, tap_elements,
             operands.bias != nullptr ? operands.bias + first : nullptr, gather.result_channels,
             gather.result_pitch(), few.in_place ? gather.source_channels : 0, operands.y + first);
    operands.completion.finish_rows(first, gather.result_channels,
                                    {operands.y + first, gather.result_pitch(), false}, pixels.rows.data(),
                                    gather.result_pitch(), static_cast<int64_t>(pixels.rows.size()));
  };
  return {pieces.count() * gather.groups, run};
}

template <class T>
GatherMemory few_channels_memory(const Gather& gather) {
  constexpr int64_t element = sizeof(T);
  const FewChannels<T> few(gather);
  return {gather.groups * gather.taps() * few.read * few.sums * element,
          few.in_place ? 0 : few.pieces(gather).buffer_elements() * element};
}

}  // namespace

template <class T>
double few_channels_cost(const Gather& gather) {
  if (gather.taps() == 1 || !few_channels_suit<T>(gather))
    return 1;                               // one is read in place, as fast as memory
  constexpr double of_adding_lanes = 1.35;  // measured, 4x4 to 11x11 taps of 64 channels
  return of_adding_lanes * static_cast<double>(FewChannels<T>(gather).sums) /
         static_cast<double>(gather.result_channels);
}

template double few_channels_cost<float>(const Gather&);
template double few_channels_cost<double>(const Gather&);

template <class T>
DirectKernel<T> few_channels_kernel() {
  return {few_channels_suit<T>, few_channels_tasks<T>, few_channels_memory<T>};
}
template DirectKernel<float> few_channels_kernel();
template DirectKernel<double> few_channels_kernel();

}  // namespace pleat::ops
