#include "pleat/ops/image/image.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/alias.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/image/image_cuda.h"
#include "pleat/ops/image/image_functors.h"

namespace pleat::ops {
namespace {

/// Images of a batch as planes of rows.
struct Planes {
  int64_t images, channels, height, width;

  Planes(const char* op, const Tensor& x, std::size_t numbers) {
    check<ShapeError>(x.rank() == 4, "{}: needs images [B, C, H, W], got {}", op, x);
    images = x.size(0);
    channels = x.size(1);
    height = x.size(2);
    width = x.size(3);
    check<ShapeError>(static_cast<int64_t>(numbers) == images, "{}: {} images need as many numbers, got {}",
                      op, images, numbers);
  }
  int64_t plane() const { return height * width; }
  int64_t image() const { return channels * plane(); }
};

Tensor plain(const Tensor& x) { return to_format(alias(x), MemoryFormat::contiguous); }

template <class F>
void with_pixels(const char* op, const Tensor& x, F f) {
  if (x.dtype() == uint8) return f(Type<uint8_t>{});
  if (x.dtype() == float32) return f(Type<float>{});
  fail<DTypeError>("{}: needs uint8 or float32 images, got {}", op, x.describe());
}

/// One row, moved and mirrored.
template <class T>
void shift_row(const T* from, T* to, int64_t width, const ImageShift& shift, bool reflect) {
  for (int64_t w = 0; w < width; ++w) {
    const int64_t source = moved_from(w + shift.right, width, reflect);
    to[shift.mirror_columns ? width - 1 - w : w] = source < 0 ? T(0) : from[source];
  }
}

/// Distances of which all that lead outside are alike, so that adding them to a place cannot overflow.
std::vector<ImageShift> checked_shifts(const Planes& p, std::span<const ImageShift> shifts, bool reflect) {
  std::vector<ImageShift> result(shifts.begin(), shifts.end());
  for (ImageShift& shift : result) {
    const auto reaches = [](int64_t distance, int64_t size) { return distance > -size && distance < size; };
    check<ShapeError>(!reflect || (reaches(shift.down, p.height) && reaches(shift.right, p.width)),
                      "shift_images: reflecting {} rows and {} columns needs distances below the image's {} "
                      "and {}",
                      shift.down, shift.right, p.height, p.width);
    shift.down = std::clamp(shift.down, -p.height, p.height);
    shift.right = std::clamp(shift.right, -p.width, p.width);
  }
  return result;
}

ImageBox clipped(const ImageBox& box, const Planes& p) {
  const auto inside = [](int64_t at, int64_t size) { return std::clamp<int64_t>(at, 0, size); };
  return {inside(box.top, p.height), inside(box.left, p.width), inside(box.bottom, p.height),
          inside(box.right, p.width)};
}

/// Calls f(first element, elements) for each row of the box in each channel of image i.
template <class F>
void for_box_rows(const Planes& p, int64_t i, const ImageBox& box, const F& f) {
  const ImageBox b = clipped(box, p);
  if (b.right <= b.left) return;
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t h = b.top; h < b.bottom; ++h)
      f(i * p.image() + (c * p.height + h) * p.width + b.left, b.right - b.left);
}

}  // namespace

Tensor shift_images(const Tensor& images, std::span<const ImageShift> distances, bool reflect) {
  const RecordOp range("shift_images", images);
  const Planes p("shift_images", images, distances.size());
  const std::vector<ImageShift> shifts = checked_shifts(p, distances, reflect);
  const Tensor x = plain(images);
  const Tensor y = empty_like(x);
  with_pixels("shift_images", x, [&]<class T>(Type<T>) {
    if constexpr (with_cuda)
      if (x.device().is_cuda()) return shift_images_cuda(x, shifts, reflect, y);
    for (int64_t i = 0; i < p.images; ++i) {
      const ImageShift& shift = shifts[static_cast<std::size_t>(i)];
      for (int64_t c = 0; c < p.channels; ++c) {
        const T* from = x.data<T>() + i * p.image() + c * p.plane();
        T* to = y.data<T>() + i * p.image() + c * p.plane();
        for (int64_t h = 0; h < p.height; ++h) {
          const int64_t source = moved_from(h + shift.down, p.height, reflect);
          T* row = to + (shift.mirror_rows ? p.height - 1 - h : h) * p.width;
          if (source < 0)
            std::fill_n(row, p.width, T(0));
          else
            shift_row(from + source * p.width, row, p.width, shift, reflect);
        }
      }
    }
  });
  return y;
}

Tensor map_images(const Tensor& images, std::span<const ImageMap> maps, const ImageMapOptions& options) {
  const RecordOp range("map_images", images);
  const Planes p("map_images", images, maps.size());
  for (const ImageMap& map : maps)
    for (const std::array<float, 3>& line : {map.row, map.column})
      for (const float number : line)
        check<ValueError>(std::isfinite(number), "map_images: maps must be finite, got {}", number);
  const Tensor x = plain(images);
  const Tensor y = empty({p.images, p.channels, options.height, options.width},
                         {.dtype = x.dtype(), .device = x.device()});
  with_pixels("map_images", x, [&]<class T>(Type<T>) {
    if constexpr (with_cuda)
      if (x.device().is_cuda()) return map_images_cuda(x, maps, options, y);
    T* to = y.data<T>();
    for (int64_t i = 0; i < p.images; ++i)
      for (int64_t c = 0; c < p.channels; ++c)
        for (int64_t h = 0; h < options.height; ++h)
          for (int64_t w = 0; w < options.width; ++w)
            *to++ =
                mapped_pixel(x.data<T>() + i * p.image() + c * p.plane(), p.height, p.width,
                             maps[static_cast<std::size_t>(i)], h, w, options.repeat_edge, options.nearest);
  });
  return y;
}

Tensor erase_boxes(const Tensor& images, std::span<const ImageBox> boxes) {
  const RecordOp range("erase_boxes", images);
  const Planes p("erase_boxes", images, boxes.size());
  const Tensor x = plain(images);
  const Tensor y = empty_like(x);
  with_pixels("erase_boxes", x, [&]<class T>(Type<T>) {
    if constexpr (with_cuda)
      if (x.device().is_cuda()) return erase_boxes_cuda(x, boxes, y);
    std::copy_n(x.data<T>(), x.numel(), y.data<T>());
    for (int64_t i = 0; i < p.images; ++i)
      for_box_rows(p, i, boxes[static_cast<std::size_t>(i)],
                   [&](int64_t first, int64_t n) { std::fill_n(y.data<T>() + first, n, T(0)); });
  });
  return y;
}

Tensor mix_images(const Tensor& images, std::span<const ImageMix> mixes) {
  const RecordOp range("mix_images", images);
  const Planes p("mix_images", images, mixes.size());
  check<DTypeError>(images.dtype() == float32, "mix_images: needs float32 images, got {}", images);
  for (const ImageMix& mix : mixes) {
    check<ValueError>(mix.share >= 0 && mix.share <= 1, "mix_images: a share must be in [0, 1], got {}",
                      mix.share);
    check<IndexError>(mix.partner >= 0 && mix.partner < p.images,
                      "mix_images: there is no image {} in a batch of {}", mix.partner, p.images);
  }
  const Tensor x = plain(images);
  const Tensor y = empty_like(x);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      mix_images_cuda(x, mixes, y);
      return y;
    }
  for (int64_t i = 0; i < p.images; ++i) {
    const ImageMix& mix = mixes[static_cast<std::size_t>(i)];
    const float* own = x.data<float>() + i * p.image();
    const float* other = x.data<float>() + mix.partner * p.image();
    float* to = y.data<float>() + i * p.image();
    for (int64_t k = 0; k < p.image(); ++k) to[k] = mix.share * own[k] + (1 - mix.share) * other[k];
    for_box_rows(p, i, mix.box, [&](int64_t first, int64_t n) {
      std::copy_n(other + first - i * p.image(), n, y.data<float>() + first);
    });
  }
  return y;
}

Tensor adjust_colors(const Tensor& images, std::span<const ImageColors> colors) {
  const RecordOp range("adjust_colors", images);
  const Planes p("adjust_colors", images, colors.size());
  check<ShapeError>(p.channels == 3, "adjust_colors: needs 3 channels, got {}", images);
  check<DTypeError>(images.dtype() == float32, "adjust_colors: needs float32 images, got {}", images);
  for (const ImageColors& by : colors)
    for (const float factor : {by.brightness, by.contrast, by.saturation})
      check<ValueError>(std::isfinite(factor), "adjust_colors: factors must be finite, got {}", factor);
  const Tensor x = plain(images);
  const Tensor y = empty_like(x);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      adjust_colors_cuda(x, colors, y);
      return y;
    }
  const int64_t n = p.plane();
  for (int64_t i = 0; i < p.images; ++i) {
    const ImageColors& by = colors[static_cast<std::size_t>(i)];
    const float* red = x.data<float>() + i * p.image();
    float* to = y.data<float>() + i * p.image();
    const auto grey = [&](int64_t k) { return grey_of(red[k], red[n + k], red[2 * n + k]); };
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += grey(k);
    const auto mean = static_cast<float>(sum / static_cast<double>(std::max<int64_t>(n, 1)));
    for (int64_t k = 0; k < n; ++k)
      for (int64_t c = 0; c < 3; ++c) to[c * n + k] = adjusted(red[c * n + k], grey(k), mean, by);
  }
  return y;
}

Tensor scale_channels(const Tensor& images, std::span<const float> scale, std::span<const float> shift) {
  const RecordOp range("scale_channels", images);
  const auto channels = static_cast<int64_t>(scale.size());
  check<ShapeError>(shift.size() == scale.size(), "scale_channels: {} factors, but {} summands", scale.size(),
                    shift.size());
  check<ShapeError>(images.rank() >= 2 && images.size(1) == channels,
                    "scale_channels: needs [B, {}, ...], got {}", channels, images);
  const Tensor x = plain(images);
  const Tensor y = empty(x.shape(), {.device = x.device()});
  const int64_t pixels = x.numel() == 0 ? 1 : x.numel() / (x.size(0) * channels);
  with_pixels("scale_channels", x, [&]<class T>(Type<T>) {
    if constexpr (with_cuda)
      if (x.device().is_cuda()) return scale_channels_cuda(x, scale, shift, pixels, y);
    const T* from = x.data<T>();
    float* to = y.data<float>();
    for (int64_t image = 0; image < x.size(0); ++image)
      for (std::size_t c = 0; c < scale.size(); ++c, from += pixels, to += pixels) {
        const float factor = scale[c];
        const float summand = shift[c];
        for (int64_t k = 0; k < pixels; ++k) to[k] = static_cast<float>(from[k]) * factor + summand;
      }
  });
  return y;
}

}  // namespace pleat::ops
