// Host and device.
#include "pleat/ops/sample/pixel_taps.h"

#include <bit>
#include <limits>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/ordered_lines.h"
#include "pleat/ops/sample/pixel_taps_cpu.h"

namespace pleat::ops {
namespace {

/// Where elements [n, c, p] lie in memory.
struct Layout {
  FastDivider channels, points;
  bool channels_last;

  PLEAT_HOST_DEVICE int64_t at(int64_t n, int64_t c, int64_t p) const {
    return channels_last ? (n * points.divisor() + p) * channels.divisor() + c
                         : (n * channels.divisor() + c) * points.divisor() + p;
  }
  /// i, which counts in memory, becomes n.
  PLEAT_HOST_DEVICE void split(int64_t& i, int64_t& c, int64_t& p) const {
    int64_t inner = i;
    i = (channels_last ? channels : points).divide(inner);
    int64_t outer = i;
    i = (channels_last ? points : channels).divide(outer);
    c = channels_last ? inner : outer;
    p = channels_last ? outer : inner;
  }
};

/// What the functors have in common.
template <class T>
struct Maps {
  Layout image;   ///< of x
  Layout result;  ///< of y
  FastDivider taps;
  const int64_t* image_of;  ///< null: map m is of image m
  const int32_t* index;
  const T* weight;

  PLEAT_HOST_DEVICE int64_t place(int64_t m, int64_t t, int64_t p) const {
    return (m * taps.divisor() + t) * result.points.divisor() + p;
  }
  PLEAT_HOST_DEVICE int64_t image_at(int64_t m) const { return image_of == nullptr ? m : image_of[m]; }
};

/// One element of y a call.
template <class T>
struct SampleElement {
  Maps<T> maps;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t m = i, c = 0, p = 0;
    maps.result.split(m, c, p);
    const int64_t n = maps.image_at(m);
    T sum = 0;
    for (int64_t t = 0; t < maps.taps.divisor(); ++t) {
      const int64_t at = maps.place(m, t, p);
      if (maps.weight[at] != 0) sum += maps.weight[at] * x[maps.image.at(n, c, maps.index[at])];
    }
    y[i] = sum;
  }
};

/// One weight a call.
template <class T>
struct SampleWeight {
  Maps<T> maps;
  const T* dy;
  const T* x;
  T* dw;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t p = i;
    int64_t t = maps.result.points.divide(p);
    const int64_t m = maps.taps.divide(t);
    const int64_t n = maps.image_at(m);
    T sum = 0;
    for (int64_t c = 0; c < maps.result.channels.divisor(); ++c)
      sum += dy[maps.result.at(m, c, p)] * x[maps.image.at(n, c, maps.index[i])];
    dw[i] = sum;
  }
};

/// The pixel of all images that a tap is of; one more than there are where it weighs nothing.
template <class T>
struct TapKey {
  Maps<T> maps;
  int64_t none;
  int64_t* key;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t p = i;
    int64_t t = maps.result.points.divide(p);
    const int64_t m = maps.taps.divide(t);
    key[i] = maps.weight[i] == 0 ? none : maps.image_at(m) * maps.image.points.divisor() + maps.index[i];
  }
};

/// A call is a channel of a tap in sorted order; that of the first of a pixel adds up all.
template <class T>
struct AddTaps {
  Maps<T> maps;
  const int64_t* key;
  const int64_t* order;
  int64_t n, none;
  const T* dy;
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t c = i;
    int64_t k = maps.image.channels.divide(c);
    const int64_t pixel = key[k];
    if (pixel == none || (k > 0 && key[k - 1] == pixel)) return;
    T sum = 0;
    for (; k < n && key[k] == pixel; ++k) {
      int64_t p = order[k];
      int64_t t = maps.result.points.divide(p);
      const int64_t m = maps.taps.divide(t);
      sum += maps.weight[order[k]] * dy[maps.result.at(m, c, p)];
    }
    int64_t place = pixel;
    const int64_t image = maps.image.points.divide(place);
    dx[maps.image.at(image, c, place)] = sum;
  }
};

int64_t pixels_of(const Shape& shape) { return count(std::span(shape).subspan(2)); }

/// Sizes of a call of y [M, C, points...] and x of this shape.
TapSizes sizes_of(const Shape& y, const Shape& x, const PixelTaps& taps, MemoryFormat format) {
  TapSizes s{.maps = y[0],
             .taps = taps.index.size(1),
             .points = pixels_of(y),
             .images = x[0],
             .channels = x[1],
             .pixels = pixels_of(x),
             .channels_last = format == MemoryFormat::channels_last,
             .image = {}};
  return s;
}

/// What the loops take images of this shape in. On the CPU rows of few channels are no work for vectors; many
/// are read several times as fast as single elements, which pays for conversions where all is read.
MemoryFormat loops_format(const Shape& image, MemoryFormat format, const PixelTaps& taps) {
  if (!taps.index.device().is_cpu()) return format;
  if (image[1] < 8) return MemoryFormat::contiguous;
  const bool reads_all = taps.index.numel() >= image[0] * pixels_of(image);
  return image[1] >= 16 && reads_all ? MemoryFormat::channels_last : format;
}

/// The image of each map for the loops of the CPU.
void name_images(TapSizes& s, const PixelTaps& taps) {
  if (taps.image.defined()) {
    s.image = taps.image.to_vector<int64_t>();
    return;
  }
  for (int64_t m = 0; m < s.maps; ++m) s.image.push_back(m);
}

template <class T>
Maps<T> maps_of(const TapSizes& s, const PixelTaps& taps, const T* weight) {
  return {{FastDivider(s.channels), FastDivider(s.pixels), s.channels_last},
          {FastDivider(s.channels), FastDivider(s.points), s.channels_last},
          FastDivider(s.taps),
          taps.image.defined() ? taps.image.data<int64_t>() : nullptr,
          taps.index.data<int32_t>(),
          weight};
}

}  // namespace

void check_plane(const char* op, const Tensor& x) {
  int64_t pixels = 1;
  for (std::size_t d = 2; d < x.shape().size(); ++d) pixels = checked_multiply(pixels, x.shape()[d], op);
  check<ShapeError>(pixels <= std::numeric_limits<int32_t>::max(),
                    "{}: images of up to 2^31 - 1 pixels can be read at points, got {}", op, x);
}

Tensor sampled_pixels(const char* op, const Tensor& x, const PixelTaps& taps, const Shape& points) {
  const RecordOp range("sampled_pixels", x, taps.weight);
  const MemoryFormat format = loops_format(x.shape(), x.memory_format(), taps);
  Shape shape{taps.index.size(0), x.size(1)};
  shape.insert(shape.end(), points.begin(), points.end());
  const Tensor from = to_format(x, format);
  const Tensor weight = to_format(taps.weight, MemoryFormat::contiguous);
  const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device(), .format = format});
  if (y.numel() == 0) return to_format(y, x.memory_format());
  TapSizes s = sizes_of(shape, x.shape(), taps, format);
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if (x.device().is_cuda())
      return for_each_index(
          op, x.device(), y.numel(),
          SampleElement<T>{maps_of(s, taps, weight.data<T>()), from.data<T>(), y.data<T>()});
    name_images(s, taps);
    const auto loops = s.channels_last ? tap_loops::forward_rows<T> : tap_loops::forward_planes<T>;
    loops(s, from.data<T>(), taps.index.data<int32_t>(), weight.data<T>(), y.data<T>());
  });
  return to_format(y, x.memory_format());
}

Tensor sampled_pixels_input(const char* op, const Tensor& dy, const PixelTaps& taps, const Shape& shape,
                            MemoryFormat result_format) {
  const RecordOp range("sampled_pixels_input", dy, taps.weight);
  const MemoryFormat format = loops_format(shape, result_format, taps);
  const Tensor from = to_format(dy, format);
  const Tensor weight = to_format(taps.weight, MemoryFormat::contiguous);
  const TensorOptions like{.dtype = dy.dtype(), .device = dy.device(), .format = format};
  if (dy.numel() == 0 || dy.device().is_cuda()) {
    const Tensor dx = zeros(shape, like);
    if (dy.numel() == 0) return dx;
    if constexpr (with_cuda) {
      const TapSizes s = sizes_of(dy.shape(), shape, taps, format);
      const Tensor keys = empty({taps.index.numel()}, {.dtype = int64, .device = dy.device()});
      const int64_t none = s.images * s.pixels;
      Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
        const Maps<T> maps = maps_of(s, taps, weight.data<T>());
        for_each_index(op, dy.device(), keys.numel(), TapKey<T>{maps, none, keys.data<int64_t>()});
        const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(none)));
        const OrderedLines runs = order_lines(op, keys, 1, keys.numel(), bits);
        for_each_index(op, dy.device(), keys.numel() * s.channels,
                       AddTaps<T>{maps, runs.keys.data<int64_t>(), runs.order.data<int64_t>(), keys.numel(),
                                  none, from.data<T>(), dx.data<T>()});
      });
    }
    return dx;
  }
  const Tensor dx = empty(shape, like);
  TapSizes s = sizes_of(dy.shape(), shape, taps, format);
  name_images(s, taps);
  Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
    const auto loops = s.channels_last ? tap_loops::input_rows<T> : tap_loops::input_planes<T>;
    loops(s, from.data<T>(), taps.index.data<int32_t>(), weight.data<T>(), dx.data<T>());
  });
  return to_format(dx, result_format);
}

Tensor sampled_pixels_weight(const char* op, const Tensor& dy, const Tensor& x, const PixelTaps& taps) {
  const RecordOp range("sampled_pixels_weight", dy, x);
  const MemoryFormat format = loops_format(x.shape(), x.memory_format(), taps);
  const Tensor dw = empty(taps.index.shape(), {.dtype = x.dtype(), .device = x.device()});
  if (dw.numel() == 0) return dw;
  const Tensor from = to_format(x, format);
  const Tensor gradient = to_format(dy, format);
  TapSizes s = sizes_of(dy.shape(), x.shape(), taps, format);
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if (x.device().is_cuda())
      return for_each_index(
          op, x.device(), dw.numel(),
          SampleWeight<T>{maps_of<T>(s, taps, nullptr), gradient.data<T>(), from.data<T>(), dw.data<T>()});
    name_images(s, taps);
    const auto loops = s.channels_last ? tap_loops::weight_rows<T> : tap_loops::weight_planes<T>;
    loops(s, gradient.data<T>(), from.data<T>(), taps.index.data<int32_t>(), dw.data<T>());
  });
  return dw;
}

}  // namespace pleat::ops
