#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/ops/conv/cuda/pixels.h"
#include "pleat/ops/conv/cuda/windows.h"

/// fold: each element of the images gathers what its windows left, without atomics.

namespace pleat::ops {
namespace {

/// Up to `most` channels of a pixel, which have their windows in common: neighbours that are moved at once
/// (`as_vectors`), or one by one.
template <class T, bool as_vectors>
struct FoldPixels {
  using Total = typename Gemm<T>::Scale;
  static constexpr std::size_t most = vector_width;
  Window window;
  PixelOf pixel;
  FastDivider parts, groups, pixels;
  int64_t channels, width;  ///< of a group; of them, of a thread
  ColumnSteps steps;
  ImageSteps to;
  const T* columns;
  std::byte* images;
  DType dtype;

  PLEAT_HOST_DEVICE void operator()(int64_t index) const {
    int64_t place = index, part = 0, group = 0, image = 0;
    if (to.channel == 1) {
      part = index;
      group = parts.divide(part);
      place = groups.divide(group);
      image = pixels.divide(place);
    } else {
      part = pixels.divide(place);
      group = parts.divide(part);
      image = groups.divide(group);
    }
    const int64_t channel = part * width;
    const auto at = pixel(place);
    const T* const from = columns + image * steps.image + group * steps.group + channel * steps.channel;
    const auto count = static_cast<std::size_t>(std::min(width, channels - channel));
    Total total[most] = {};
    window.for_each_reader(at.d, at.h, at.w, [&](int64_t tap, int64_t output) {
      const T* const first = from + tap * steps.tap + output * steps.pixel;
      if constexpr (as_vectors) {
        const auto values = *reinterpret_cast<const Vector<T, most>*>(first);
        for (std::size_t j = 0; j < most; ++j) total[j] += values.lane[j];
      } else {
        PLEAT_UNROLL
        for (std::size_t j = 0; j < most; ++j)
          if (j < count) total[j] += convert<Total>(first[static_cast<int64_t>(j) * steps.channel]);
      }
    });
    const int64_t result = image * to.image + place * to.pixel + (group * channels + channel) * to.channel;
    if constexpr (as_vectors) {
      store_vector(total, images, result, dtype);
    } else {
      PLEAT_UNROLL
      for (std::size_t j = 0; j < most; ++j)
        if (j < count) store_as(images, result + static_cast<int64_t>(j) * to.channel, dtype, total[j]);
    }
  }
};

template <class T, bool as_vectors>
void fold_pixels(const char* op, const ConvProblem& p, const std::byte* columns, const ColumnSteps& steps,
                 std::byte* images, DType type, const ImageSteps& to) {
  // Channels that are neighbours belong to neighbouring threads.
  const int64_t width = as_vectors || to.channel != 1 ? int64_t{vector_width} : 1;
  const int64_t parts = ceil_div(p.group_in(), width);
  launch_indices(
      op, p.device, p.batch * p.groups * parts * p.input_pixels(),
      FoldPixels<T, as_vectors>{Window(p), PixelOf(p.input), FastDivider(parts), FastDivider(p.groups),
                                FastDivider(p.input_pixels()), p.group_in(), width, steps, to,
                                reinterpret_cast<const T*>(columns), images, type});
}

}  // namespace

void fold_columns(const char* op, const ConvProblem& p, const std::byte* columns, DType columns_type,
                  const ColumnSteps& steps, std::byte* images, DType images_type, const ImageSteps& to) {
  if (p.batch * p.in_channels * p.input_pixels() == 0) return;
  if (columns_type == float16)
    return fold_pixels<Half, false>(op, p, columns, steps, images, images_type, to);
  if (columns_type == bfloat16)
    return fold_pixels<BFloat16, false>(op, p, columns, steps, images, images_type, to);
  if (columns_type == float64)
    return fold_pixels<double, false>(op, p, columns, steps, images, images_type, to);
  constexpr int64_t width = vector_width;
  const auto is_aligned = [](const std::byte* data, int64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(width * bytes) == 0;
  };
  bool wide = steps.channel == 1 && to.channel == 1 && is_aligned(columns, sizeof(float)) &&
              is_aligned(images, size_of(images_type));
  for (const int64_t step :
       {steps.image, steps.group, steps.tap, steps.pixel, p.group_in(), to.image, to.pixel})
    wide = wide && step % width == 0;
  if (wide) return fold_pixels<float, true>(op, p, columns, steps, images, images_type, to);
  fold_pixels<float, false>(op, p, columns, steps, images, images_type, to);
}

}  // namespace pleat::ops
