// Host and device.
#include "pleat/ops/sample/pixel_taps.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

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
#include "pleat/ops/spatial/lanes.h"

namespace pleat::ops {
namespace {

/// Steps from one element [n, c, p] to the next.
template <class Index>
struct TapSteps {
  Index map, channel, point;

  TapSteps(int64_t channels, int64_t points, bool channels_last)
      : map(static_cast<Index>(channels * points)),
        channel(static_cast<Index>(channels_last ? 1 : points)),
        point(static_cast<Index>(channels_last ? channels : 1)) {}
};

/// Calls `f` with the type in which images are stored. Where numbers are large they are of T as they are.
template <class T, class Index, class F>
PLEAT_HOST_DEVICE void by_stored_type(DType dtype, const F& f) {
  if constexpr (std::is_same_v<Index, uint32_t>)
    as_stored<T>(dtype, f);
  else
    f(Type<T>{});
}

/// What the functors have in common. Index is uint32_t where all numbers are below 2^31, else int64_t.
template <class T, class Index>
struct Maps {
  Divider<Index> groups;  ///< of channels: lanes
  Divider<Index> points, taps, pixels;
  Index channels;
  bool channels_last;
  DType dtype;                    ///< of x and y, which are computed in T
  TapSteps<Index> image, result;  ///< of x and y
  const int64_t* image_of;        ///< null: map m is of image m
  const int32_t* index;
  const T* weight;

  PLEAT_HOST_DEVICE Index place(Index m, Index t, Index p) const {
    return (m * taps.divisor() + t) * points.divisor() + p;
  }
  /// Tap i becomes the map.
  PLEAT_HOST_DEVICE void split(Index& i, Index& t, Index& p) const {
    p = i;
    t = points.divide(p);
    i = taps.divide(t);
  }
  PLEAT_HOST_DEVICE Index image_at(Index m) const {
    return image_of == nullptr ? m : static_cast<Index>(image_of[m]);
  }
};

/// The lanes of a point of y a call.
template <class T, class Index>
struct SampleElement {
  Maps<T, Index> maps;
  LaneArray<Index> x, y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    by_stored_type<T, Index>(maps.dtype, [&]<class Stored>(Type<Stored>) { point<Stored>(i); });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void point(int64_t i) const {
    auto inner = static_cast<Index>(i);
    Index outer = (maps.channels_last ? maps.groups : maps.points).divide(inner);
    const Index m = (maps.channels_last ? maps.points : maps.groups).divide(outer);
    const Index p = maps.channels_last ? outer : inner;
    const Index c = (maps.channels_last ? inner : outer) * vector_width;
    const Index left = maps.channels - c;
    const Index start = maps.image_at(m) * maps.image.map + c * maps.image.channel;
    T sum[lanes] = {};
    PLEAT_ROLLED
    for (Index t = 0; t < maps.taps.divisor(); ++t) {
      const Index at = maps.place(m, t, p);
      const T weight = maps.weight[at];
      if (weight == 0) continue;
      T value[lanes];
      x.template load<Stored>(start + static_cast<Index>(maps.index[at]) * maps.image.point, left, value);
      PLEAT_UNROLL
      for (int k = 0; k < lanes; ++k) sum[k] += weight * value[k];
    }
    y.template store<Stored>(m * maps.result.map + c * maps.result.channel + p * maps.result.point, left,
                             sum);
  }
};

/// The weights of some taps of a point a call, which read y's gradient once.
template <class T, class Index>
struct SampleWeight {
  static constexpr int together = 4;
  Maps<T, Index> maps;
  Divider<Index> parts;  ///< of a point's taps
  LaneArray<Index> dy, x;
  T* dw;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    by_stored_type<T, Index>(maps.dtype,
                             [&]<class Stored>(Type<Stored>) { taps<Stored>(static_cast<Index>(i)); });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void taps(Index p) const {
    Index part = maps.points.divide(p);
    const Index m = parts.divide(part);
    const Index first = part * together;
    const Index to = m * maps.result.map + p * maps.result.point;
    Index from[together];
    PLEAT_UNROLL
    for (int k = 0; k < together; ++k)
      from[k] = maps.image_at(m) * maps.image.map +
                static_cast<Index>(maps.index[maps.place(m, exists(first, k) ? first + k : first, p)]) *
                    maps.image.point;
    T sum[together] = {};
    PLEAT_ROLLED
    for (Index c = 0; c < maps.groups.divisor() * vector_width; c += vector_width) {
      const Index left = maps.channels - c;
      const auto load = [&](const LaneArray<Index>& array, Index at, T* value) {
        array.template load<Stored>(at, left, value);
        if (array.exists(lanes - 1, left)) return;
        PLEAT_UNROLL
        for (int j = 0; j < lanes; ++j)
          if (!array.exists(j, left)) value[j] = 0;
      };
      T gradient[lanes];
      load(dy, to + c * maps.result.channel, gradient);
      PLEAT_UNROLL
      for (int k = 0; k < together; ++k) {
        T value[lanes];
        load(x, from[k] + c * maps.image.channel, value);
        PLEAT_UNROLL
        for (int j = 0; j < lanes; ++j) sum[k] += gradient[j] * value[j];
      }
    }
    PLEAT_UNROLL
    for (int k = 0; k < together; ++k)
      if (exists(first, k)) dw[maps.place(m, first + k, p)] = sum[k];
  }
  PLEAT_HOST_DEVICE bool exists(Index first, int k) const { return first + k < maps.taps.divisor(); }
};

/// What pixels of all images are sorted by.
template <class Index>
using PixelKey = std::make_signed_t<Index>;

/// The pixel of all images that a tap is of; one more than there are where it weighs nothing.
template <class T, class Index>
struct TapKey {
  Maps<T, Index> maps;
  PixelKey<Index> none;
  PixelKey<Index>* key;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    auto m = static_cast<Index>(i);
    Index t = 0, p = 0;
    maps.split(m, t, p);
    key[i] = maps.weight[i] == 0
                 ? none
                 : static_cast<PixelKey<Index>>(maps.image_at(m) * maps.pixels.divisor()) + maps.index[i];
  }
};

/// A call is the lanes of a tap in sorted order; those of the first of a pixel add up all.
template <class T, class Index>
struct AddTaps {
  Maps<T, Index> maps;
  const PixelKey<Index>* key;
  const int64_t* order;
  Index n;
  PixelKey<Index> none;
  LaneArray<Index> dy, dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    by_stored_type<T, Index>(maps.dtype, [&]<class Stored>(Type<Stored>) { pixel<Stored>(i); });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void pixel(int64_t i) const {
    auto c = static_cast<Index>(i);
    Index k = maps.groups.divide(c);
    c *= vector_width;
    const Index left = maps.channels - c;
    const PixelKey<Index> found = key[k];
    if (found == none || (k > 0 && key[k - 1] == found)) return;
    T sum[lanes] = {};
    PLEAT_ROLLED
    for (; k < n && key[k] == found; ++k) {
      const auto at = static_cast<Index>(order[k]);
      Index m = at, t = 0, p = 0;
      maps.split(m, t, p);
      T value[lanes];
      dy.template load<Stored>(m * maps.result.map + c * maps.result.channel + p * maps.result.point, left,
                               value);
      const T weight = maps.weight[at];
      PLEAT_UNROLL
      for (int j = 0; j < lanes; ++j) sum[j] += weight * value[j];
    }
    auto place = static_cast<Index>(found);
    const Index image = maps.pixels.divide(place);
    dx.template store<Stored>(image * maps.image.map + c * maps.image.channel + place * maps.image.point,
                              left, sum);
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

/// Whether each tap, and each point of y and of x, in lanes of its channels, can be counted by 32 bits.
bool counts_small(const TapSizes& s) {
  const int64_t most = std::max({s.maps * s.taps * s.points, s.maps * s.points, s.images * s.pixels});
  return lane_groups(s.channels) * lanes * most <= std::numeric_limits<int32_t>::max();
}

/// In a type that loops read: kernels that count by 32 bits read half types as they are.
Tensor read_by_loops(const Tensor& x, const TapSizes& s) {
  return x.device().is_cuda() && counts_small(s) ? x : cast(x, compute_dtype(x.dtype()));
}

/// The image of each map for the loops of the CPU.
void name_images(TapSizes& s, const PixelTaps& taps) {
  if (taps.image.defined()) {
    s.image = taps.image.to_vector<int64_t>();
    return;
  }
  for (int64_t m = 0; m < s.maps; ++m) s.image.push_back(m);
}

/// Calls `run` with what the functors have in common, by the smallest numbers that count it.
template <class T, class Run>
void with_maps(const TapSizes& s, const PixelTaps& taps, DType dtype, const T* weight, const Run& run) {
  const auto maps = [&]<class Index>(Index) {
    return Maps<T, Index>{Divider<Index>(lane_groups(s.channels)),
                          Divider<Index>(s.points),
                          Divider<Index>(s.taps),
                          Divider<Index>(s.pixels),
                          static_cast<Index>(s.channels),
                          s.channels_last,
                          dtype,
                          {s.channels, s.pixels, s.channels_last},
                          {s.channels, s.points, s.channels_last},
                          taps.image.defined() ? taps.image.data<int64_t>() : nullptr,
                          taps.index.data<int32_t>(),
                          weight};
  };
  if constexpr (std::is_same_v<T, float>)
    if (counts_small(s)) return run(maps(uint32_t{}));
  run(maps(int64_t{}));
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
  TapSizes s = sizes_of(shape, x.shape(), taps, format);
  const Tensor from = to_format(read_by_loops(x, s), format);
  const Tensor weight = to_format(taps.weight, MemoryFormat::contiguous);
  const Tensor y = empty(shape, {.dtype = from.dtype(), .device = x.device(), .format = format});
  const auto result = [&] { return cast(to_format(y, x.memory_format()), x.dtype()); };
  if (y.numel() == 0) return result();
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if (x.device().is_cuda())
      return with_maps(s, taps, from.dtype(), weight.data<T>(), [&]<class Index>(const Maps<T, Index>& maps) {
        const int64_t groups = lane_groups(s.channels);
        for_each_index(
            op, x.device(), s.maps * s.points * groups,
            SampleElement<T, Index>{maps, LaneArray<Index>(from, 0, groups), LaneArray<Index>(y, 0, groups)});
      });
    name_images(s, taps);
    const auto loops = s.channels_last ? tap_loops::forward_rows<T> : tap_loops::forward_planes<T>;
    loops(s, from.data<T>(), taps.index.data<int32_t>(), weight.data<T>(), y.data<T>());
  });
  return result();
}

Tensor sampled_pixels_input(const char* op, const Tensor& dy, const PixelTaps& taps, const Shape& shape,
                            MemoryFormat result_format) {
  const RecordOp range("sampled_pixels_input", dy, taps.weight);
  const MemoryFormat format = loops_format(shape, result_format, taps);
  TapSizes s = sizes_of(dy.shape(), shape, taps, format);
  const Tensor from = to_format(read_by_loops(dy, s), format);
  const Tensor weight = to_format(taps.weight, MemoryFormat::contiguous);
  const TensorOptions like{.dtype = from.dtype(), .device = dy.device(), .format = format};
  if (dy.numel() == 0 || dy.device().is_cuda()) {
    const Tensor dx = zeros(shape, like);
    if (dy.numel() == 0) return cast(dx, dy.dtype());
    Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
      if constexpr (with_cuda)
        with_maps(s, taps, from.dtype(), weight.data<T>(), [&]<class Index>(const Maps<T, Index>& maps) {
          using Key = PixelKey<Index>;
          const Tensor keys = empty({taps.index.numel()}, {.dtype = dtype_of<Key>(), .device = dy.device()});
          const auto none = static_cast<Key>(s.images * s.pixels);
          for_each_index(op, dy.device(), keys.numel(), TapKey<T, Index>{maps, none, keys.data<Key>()});
          const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(none)));
          const OrderedLines runs = order_lines(op, keys, 1, keys.numel(), bits);
          const int64_t groups = lane_groups(s.channels);
          for_each_index(
              op, dy.device(), keys.numel() * groups,
              AddTaps<T, Index>{maps, runs.keys.data<Key>(), runs.order.data<int64_t>(),
                                static_cast<Index>(keys.numel()), none, LaneArray<Index>(from, 0, groups),
                                LaneArray<Index>(dx, 0, groups)});
        });
    });
    return cast(dx, dy.dtype());
  }
  const Tensor dx = empty(shape, like);
  name_images(s, taps);
  Floating::dispatch(dy.dtype(), [&]<class T>(Type<T>) {
    const auto loops = s.channels_last ? tap_loops::input_rows<T> : tap_loops::input_planes<T>;
    loops(s, from.data<T>(), taps.index.data<int32_t>(), weight.data<T>(), dx.data<T>());
  });
  return cast(to_format(dx, result_format), dy.dtype());
}

Tensor sampled_pixels_weight(const char* op, const Tensor& dy, const Tensor& x, const PixelTaps& taps) {
  const RecordOp range("sampled_pixels_weight", dy, x);
  const MemoryFormat format = loops_format(x.shape(), x.memory_format(), taps);
  const Tensor dw = empty(taps.index.shape(), {.dtype = compute_dtype(x.dtype()), .device = x.device()});
  if (dw.numel() == 0) return dw;
  TapSizes s = sizes_of(dy.shape(), x.shape(), taps, format);
  const Tensor from = to_format(read_by_loops(x, s), format);
  const Tensor gradient = to_format(read_by_loops(dy, s), format);
  Floating::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if (x.device().is_cuda())
      return with_maps<T>(s, taps, from.dtype(), nullptr, [&]<class Index>(const Maps<T, Index>& maps) {
        const int64_t parts = ceil_div(s.taps, int64_t{SampleWeight<T, Index>::together});
        for_each_index(
            op, x.device(), s.maps * parts * s.points,
            SampleWeight<T, Index>{maps, Divider<Index>(parts),
                                   LaneArray<Index>(gradient, 0, lane_groups(s.channels)),
                                   LaneArray<Index>(from, 0, lane_groups(s.channels)), dw.data<T>()});
      });
    name_images(s, taps);
    const auto loops = s.channels_last ? tap_loops::weight_rows<T> : tap_loops::weight_planes<T>;
    loops(s, gradient.data<T>(), from.data<T>(), taps.index.data<int32_t>(), dw.data<T>());
  });
  return dw;
}

}  // namespace pleat::ops
