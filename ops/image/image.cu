#include <type_traits>

#include "pleat/core/kernels/block.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/ops/image/image_cuda.h"
#include "pleat/ops/image/image_functors.h"

namespace pleat::ops {
namespace {

/// Which image, channel, row and column element i of a batch is.
struct Pixel {
  int64_t image, channel, row, column;
};
struct Batch {
  FastDivider channels, height, width;

  explicit Batch(const Tensor& x) : channels(x.size(1)), height(x.size(2)), width(x.size(3)) {}

  PLEAT_HOST_DEVICE Pixel pixel(int64_t i) const {
    Pixel p{};
    p.column = i;
    p.row = width.divide(p.column);
    p.channel = height.divide(p.row);
    p.image = channels.divide(p.channel);
    return p;
  }
  PLEAT_HOST_DEVICE int64_t at(const Pixel& p) const {
    return ((p.image * channels.divisor() + p.channel) * height.divisor() + p.row) * width.divisor() +
           p.column;
  }
};

template <class T>
struct ShiftedPixel {
  Batch batch;
  const ImageShift* shifts;
  bool reflect;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    Pixel p = batch.pixel(i);
    const ImageShift& shift = shifts[p.image];
    const int64_t height = batch.height.divisor();
    const int64_t width = batch.width.divisor();
    if (shift.mirror_rows) p.row = height - 1 - p.row;
    if (shift.mirror_columns) p.column = width - 1 - p.column;
    p.row = moved_from(p.row + shift.down, height, reflect);
    p.column = moved_from(p.column + shift.right, width, reflect);
    y[i] = p.row < 0 || p.column < 0 ? T(0) : x[batch.at(p)];
  }
};

template <class T>
struct MappedPixel {
  Batch result;
  int64_t height, width;  ///< of the images
  const ImageMap* maps;
  bool repeat_edge, nearest;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel p = result.pixel(i);
    const T* plane = x + (p.image * result.channels.divisor() + p.channel) * height * width;
    y[i] = mapped_pixel(plane, height, width, maps[p.image], p.row, p.column, repeat_edge, nearest);
  }
};

template <class T>
struct ErasedPixel {
  Batch batch;
  const ImageBox* boxes;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel p = batch.pixel(i);
    y[i] = is_inside(boxes[p.image], p.row, p.column) ? T(0) : x[i];
  }
};

struct MixedPixel {
  Batch batch;
  const ImageMix* mixes;
  const float* x;
  float* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    Pixel p = batch.pixel(i);
    const ImageMix& mix = mixes[p.image];
    p.image = mix.partner;
    const float other = x[batch.at(p)];
    y[i] = is_inside(mix.box, p.row, p.column) ? other : mix.share * x[i] + (1 - mix.share) * other;
  }
};

/// A block takes an image.
struct AdjustedImage {
  int64_t n;  ///< pixels
  const ImageColors* colors;
  const float* x;
  float* y;

  __device__ void operator()(int64_t b, const Block& block) const {
    const float* from = x + b * 3 * n;
    const Teams all{log_block_threads, true};
    double sum = 0;
    for (int64_t k = block.thread(); k < n; k += block_threads) sum += grey(from, k);
    block.combine(sum, all, Plus{});
    block.share(sum, all);
    const auto mean = static_cast<float>(sum / static_cast<double>(n));
    for (int64_t k = block.thread(); k < n; k += block_threads)
      for (int64_t c = 0; c < 3; ++c)
        y[(b * 3 + c) * n + k] = adjusted(from[c * n + k], grey(from, k), mean, colors[b]);
  }

 private:
  struct Plus {
    PLEAT_HOST_DEVICE void operator()(double& into, double other) const { into += other; }
  };
  PLEAT_HOST_DEVICE float grey(const float* from, int64_t k) const {
    return grey_of(from[k], from[n + k], from[2 * n + k]);
  }
};

template <class T>
struct ScaledElement {
  FastDivider pixels, channels;
  const float* factors;  ///< scales, then shifts
  const T* x;
  float* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t rest = i;
    int64_t channel = pixels.divide(rest);
    channels.divide(channel);
    y[i] = static_cast<float>(x[i]) * factors[channel] + factors[channels.divisor() + channel];
  }
};

template <class F>
void with_pixels(DType dtype, const F& f) {
  if (dtype == uint8)
    f(Type<uint8_t>{});
  else
    f(Type<float>{});
}

}  // namespace

void shift_images_cuda(const Tensor& x, std::span<const ImageShift> shifts, bool reflect, const Tensor& y) {
  const HostArray<ImageShift> table(shifts, x.device());
  with_pixels(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("shift_images", x.device(), x.numel(),
                   ShiftedPixel<T>{Batch(x), table.data(), reflect, x.data<T>(), y.data<T>()});
  });
}

void map_images_cuda(const Tensor& x, std::span<const ImageMap> maps, const ImageMapOptions& options,
                     const Tensor& y) {
  const HostArray<ImageMap> table(maps, x.device());
  with_pixels(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("map_images", x.device(), y.numel(),
                   MappedPixel<T>{Batch(y), x.size(2), x.size(3), table.data(), options.repeat_edge,
                                  options.nearest, x.data<T>(), y.data<T>()});
  });
}

void erase_boxes_cuda(const Tensor& x, std::span<const ImageBox> boxes, const Tensor& y) {
  const HostArray<ImageBox> table(boxes, x.device());
  with_pixels(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("erase_boxes", x.device(), x.numel(),
                   ErasedPixel<T>{Batch(x), table.data(), x.data<T>(), y.data<T>()});
  });
}

void mix_images_cuda(const Tensor& x, std::span<const ImageMix> mixes, const Tensor& y) {
  const HostArray<ImageMix> table(mixes, x.device());
  launch_indices("mix_images", x.device(), x.numel(),
                 MixedPixel{Batch(x), table.data(), x.data<float>(), y.data<float>()});
}

void adjust_colors_cuda(const Tensor& x, std::span<const ImageColors> colors, const Tensor& y) {
  const HostArray<ImageColors> table(colors, x.device());
  const int64_t pixels = x.size(2) * x.size(3);
  if (pixels == 0) return;
  launch_blocks("adjust_colors", x.device(), x.size(0),
                AdjustedImage{pixels, table.data(), x.data<float>(), y.data<float>()});
}

void scale_channels_cuda(const Tensor& x, std::span<const float> scale, std::span<const float> shift,
                         int64_t pixels, const Tensor& y) {
  std::vector<float> factors(scale.begin(), scale.end());
  factors.insert(factors.end(), shift.begin(), shift.end());
  const HostArray<float> table(factors, x.device());
  with_pixels(x.dtype(), [&]<class T>(Type<T>) {
    launch_indices("scale_channels", x.device(), x.numel(),
                   ScaledElement<T>{FastDivider(pixels), FastDivider(x.size(1)), table.data(), x.data<T>(),
                                    y.data<float>()});
  });
}

}  // namespace pleat::ops
