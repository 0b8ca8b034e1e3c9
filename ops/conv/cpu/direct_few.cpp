#include <algorithm>
#include <bit>
#include <utility>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

/// Vectors lie along the source's channels: one sum for each pair of a pixel and a result channel, whose
/// lanes are added at the end.

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::lanes;
using simd::Vector;

constexpr int64_t most_channels = 8;

template <class T>
struct FewChannels {
  int64_t sums;  ///< of a pixel: a power of two of them fill the tile
  int64_t read;  ///< elements of a source pixel, in whole vectors

  explicit FewChannels(const Gather& gather)
      : sums(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(gather.result_channels)))),
        read(round_up(gather.source_channels, lanes<T>)) {}

  GatherPieces pieces(const Gather& gather) const {
    return GatherPieces::for_results(gather, buffer_elements_wanted, read);
  }
};

/// Weights as [depth in vectors][sum][lane], zeros for channels that are not there.
template <class T>
std::shared_ptr<std::byte> pack_rows(const Gather& gather, const GatherWeights<T>& weights,
                                     const FewChannels<T>& few) {
  auto memory = scratch<T>(gather.taps() * few.read * few.sums);
  T* out = elements_of<T>(memory);
  for (const int64_t tap : weights.taps)
    for (int64_t first = 0; first < few.read; first += lanes<T>)
      for (int64_t k = 0; k < few.sums; ++k)
        for (int64_t c = first; c < first + lanes<T>; ++c)
          *out++ = c < gather.source_channels && k < gather.result_channels
                       ? weights.data[tap * weights.tap + c * weights.source + k * weights.result]
                       : T(0);
  return memory;
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

/// All pixels of a piece times the rows of weights, of which `tap` elements are a tap's.
template <class T, int sums>
void multiply_rows(const GatherPixels& pixels, const T* buffer, const T* weights, int64_t tap, const T* bias,
                   int64_t channels, T* y) {
  using V = Vector<T>;
  constexpr int tile = static_cast<int>(lanes<T>) / sums;
  T start[sums] = {};
  if (bias != nullptr) std::copy_n(bias, channels, start);
  std::size_t p = 0;
  for (const GatherPixels::Group& group : pixels.groups)
    while (p < group.end) {
      const std::size_t count = std::min<std::size_t>(tile, group.end - p);
      const T* from[tile];
      for (std::size_t i = 0; i < tile; ++i) from[i] = buffer + pixels.bases[p + std::min(i, count - 1)];
      V total[tile * sums] = {};
      for (const GatherRun& run : group.runs) {
        const T* w = weights + run.tap * tap;
        for (int64_t c = run.offset; c < run.offset + run.length; c += lanes<T>, w += sums * lanes<T>)
          for_constants<tile>([&](auto i) {
            const V x = *reinterpret_cast<const V*>(from[i] + c);
            for_constants<sums>(
                [&](auto k) { total[i * sums + k] += x * *reinterpret_cast<const V*>(w + k * lanes<T>); });
          });
      }
      T added[lanes<T>];
      *reinterpret_cast<V*>(added) = add_lanes<T>(total);
      for (std::size_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < channels; ++k)
          y[pixels.rows[p + i] * channels + k] = start[k] + added[static_cast<int64_t>(i) * sums + k];
      p += count;
    }
}

}  // namespace

template <class T>
bool few_channels_suit(const Gather& gather) {
  const FewChannels<T> few(gather);
  return gather.result_channels <= most_channels &&
         few.sums * (few.read / lanes<T> * gather.taps() + 3) < gather.depth();
}

template <class T>
void multiply_few(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                  T* y) {
  const FewChannels<T> few(gather);
  const GatherPieces pieces = few.pieces(gather);
  const auto packed = pack_rows(gather, weights, few);
  const auto run = few.sums == 1   ? multiply_rows<T, 1>
                   : few.sums == 2 ? multiply_rows<T, 2>
                   : few.sums == 4 ? multiply_rows<T, 4>
                                   : multiply_rows<T, 8>;
  parallel_chunks(pieces.count(), [&](int64_t piece) {
    const auto memory = scratch<T>(pieces.buffer_elements());
    T* buffer = elements_of<T>(memory);
    thread_local GatherPixels pixels;
    pieces.fill(piece, source, 0, gather.source_channels, buffer, pixels);
    run(pixels, buffer, elements_of<T>(packed), few.read * few.sums, bias, gather.result_channels, y);
  });
}

template <class T>
int64_t few_workspace(const Gather& gather) {
  const FewChannels<T> few(gather);
  const int64_t weights = gather.taps() * few.read * few.sums;
  const int64_t buffers = num_threads() * few.pieces(gather).buffer_elements();
  return (buffers + weights) * static_cast<int64_t>(sizeof(T));
}

template bool few_channels_suit<float>(const Gather&);
template bool few_channels_suit<double>(const Gather&);
template void multiply_few(const Gather&, const float*, const GatherWeights<float>&, const float*, float*);
template void multiply_few(const Gather&, const double*, const GatherWeights<double>&, const double*,
                           double*);
template int64_t few_workspace<float>(const Gather&);
template int64_t few_workspace<double>(const Gather&);

}  // namespace pleat::ops
