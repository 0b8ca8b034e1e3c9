#include <algorithm>

#include "pleat/ops/conv/cpu/direct.h"
#include "pleat/ops/conv/nhwc.h"

namespace pleat::ops {
namespace {

/// Channels summed at a time: few enough for registers.
constexpr int64_t block = 64;

/// `width` channels from the first on; a constant width lets the compiler keep the sums in registers.
template <class T, int64_t fixed>
void gather_channels(const T* pixel, const std::vector<int64_t>& taps, const T* weights, int64_t channels,
                     const T* bias, int64_t width, T* y) {
  const int64_t n = fixed > 0 ? fixed : width;
  T sums[block];
  for (int64_t c = 0; c < n; ++c) sums[c] = bias != nullptr ? bias[c] : T(0);
  for (const int64_t tap : taps) {
    for (int64_t c = 0; c < n; ++c) sums[c] += pixel[tap + c] * weights[c];
    weights += channels;
  }
  std::copy_n(sums, n, y);
}

}  // namespace

template <class T>
void depthwise_gather(const Gather& gather, const T* source, const T* weights, const T* bias, T* y) {
  const auto pieces = GatherPieces::for_results(gather, buffer_elements_wanted);
  const int64_t channels = gather.result_channels;
  const std::vector<int64_t> taps = pieces.tap_offsets();
  parallel_chunks(pieces.count(), [&](int64_t piece) {
    const auto memory = scratch<T>(pieces.buffer_elements());
    T* buffer = elements_of<T>(memory);
    GatherPixels pixels;
    pieces.fill(piece, source, 0, channels, buffer, pixels);
    for (std::size_t p = 0; p < pixels.bases.size(); ++p)
      for (int64_t c = 0; c < channels; c += block) {
        const int64_t width = std::min(block, channels - c);
        const auto run = width == block ? gather_channels<T, block> : gather_channels<T, 0>;
        run(buffer + pixels.bases[p] + c, taps, weights + c, channels, bias != nullptr ? bias + c : nullptr,
            width, y + pixels.rows[p] * channels + c);
      }
  });
}

template <class T>
void depthwise_weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw) {
  const auto pieces = GatherPieces::for_results(gather, buffer_elements_wanted);
  const int64_t channels = gather.result_channels;
  const std::vector<int64_t> taps = pieces.tap_offsets();
  const int64_t size = static_cast<int64_t>(taps.size()) * channels;
  const int64_t chunks = chunks_for(pieces.count(), size * static_cast<int64_t>(sizeof(T)));
  const auto partials = scratch<T>(chunks * size);
  parallel_chunks(chunks, [&](int64_t chunk) {
    const auto memory = scratch<T>(pieces.buffer_elements());
    T* buffer = elements_of<T>(memory);
    T* sums = elements_of<T>(partials) + chunk * size;
    std::fill_n(sums, size, T(0));
    GatherPixels pixels;
    for (int64_t piece = pieces.count() * chunk / chunks; piece < pieces.count() * (chunk + 1) / chunks;
         ++piece) {
      pieces.fill(piece, x, 0, channels, buffer, pixels);
      for (std::size_t p = 0; p < pixels.bases.size(); ++p) {
        const T* gradient = dy + pixels.rows[p] * channels;
        T* sum = sums;
        for (const int64_t tap : taps) {
          const T* pixel = buffer + pixels.bases[p] + tap;
          for (int64_t c = 0; c < channels; ++c) sum[c] += pixel[c] * gradient[c];
          sum += channels;
        }
      }
    }
  });
  sum_partials(elements_of<T>(partials), chunks, size, dw);
}

template void depthwise_gather(const Gather&, const float*, const float*, const float*, float*);
template void depthwise_gather(const Gather&, const double*, const double*, const double*, double*);
template void depthwise_weight_gradient(const Gather&, const float*, const float*, float*);
template void depthwise_weight_gradient(const Gather&, const double*, const double*, double*);

}  // namespace pleat::ops
