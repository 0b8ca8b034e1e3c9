// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/ops/pool/kernels.h"
#include "pleat/ops/spatial/lanes.h"

/// The index arithmetic of max pooling, for T = float or double, Index = int32 or int64.

namespace pleat::ops {

/// A tensor [images, channels, pixels] of either layout.
struct PlaneSteps {
  int64_t channels, pixels;
  int64_t image_step, channel_step, pixel_step;

  PLEAT_HOST_DEVICE int64_t at(int64_t n, int64_t c, int64_t p) const {
    return n * image_step + c * channel_step + p * pixel_step;
  }
};

/// Whether a value takes the maximum over from one at an earlier place: a NaN is larger than any number, of
/// equal ones the first stays.
template <class T>
PLEAT_HOST_DEVICE bool is_new_maximum(T value, T best) {
  return !(value <= best) & (best == best);
}

/// A WindowRule as kernels count, which divide by what was known before: by numbers of 64 bits or, where all
/// are small (fits_small), of uint32_t.
template <class Index>
class Window {
 public:
  using Signed = std::make_signed_t<Index>;

  Window() = default;
  explicit Window(const WindowRule& rule)
      : inputs(static_cast<Signed>(rule.inputs)),
        step(static_cast<Signed>(rule.step)),
        outputs_(static_cast<Signed>(rule.outputs)),
        stride_(static_cast<Signed>(rule.stride)),
        padding_(static_cast<Signed>(rule.padding)),
        reach_(static_cast<Signed>(rule.step * (rule.kernel - 1))),
        adaptive_(rule.adaptive),
        by_inputs_(rule.inputs),
        by_outputs_(rule.outputs),
        by_stride_(rule.stride),
        by_step_(rule.step) {}
  static bool fits_small(const WindowRule& rule) {
    constexpr int64_t most = int64_t{1} << 30;
    if (rule.adaptive) return std::max(rule.inputs, rule.outputs) < 1 << 15;
    if (std::max({rule.outputs, rule.kernel, rule.stride, rule.padding, rule.step}) >= most) return false;
    return rule.inputs + rule.padding + rule.step * rule.kernel < most && rule.outputs * rule.stride < most;
  }

  Signed inputs = 1;
  Signed step = 1;

  PLEAT_HOST_DEVICE Signed begin(Index o) const {
    if (adaptive_) {
      Index rest = static_cast<Index>(inputs) * o;
      return static_cast<Signed>(by_outputs_.divide(rest));
    }
    Signed start = static_cast<Signed>(o) * stride_ - padding_;
    if (start < 0) {
      auto before = static_cast<Index>(step - 1 - start);
      start += static_cast<Signed>(by_step_.divide(before)) * step;
    }
    return start < inputs ? start : inputs;
  }
  PLEAT_HOST_DEVICE Signed end(Index o) const {
    if (adaptive_) {
      Index rest = static_cast<Index>(inputs) * (o + 1);
      const auto whole = static_cast<Signed>(by_outputs_.divide(rest));
      return whole + (rest != 0 ? 1 : 0);
    }
    const Signed after = static_cast<Signed>(o) * stride_ - padding_ + reach_ + 1;
    return after < inputs ? after : inputs;
  }

  /// The first and the last window that can reach input i; between them may be some that dilation leads
  /// around it.
  struct Over {
    Signed first, last;
  };
  PLEAT_HOST_DEVICE Over over(Index i) const {
    if (adaptive_) {
      Index before = static_cast<Index>(outputs_) * i, after = before + static_cast<Index>(outputs_);
      const auto first = static_cast<Signed>(by_inputs_.divide(before));
      const auto whole = static_cast<Signed>(by_inputs_.divide(after));
      return {first, whole - (after == 0 ? 1 : 0)};
    }
    Index place = i + static_cast<Index>(padding_);
    const Signed behind = static_cast<Signed>(place) - reach_;
    auto rounded = static_cast<Index>((behind < 0 ? 0 : behind) + stride_ - 1);
    const auto first = static_cast<Signed>(by_stride_.divide(rounded));
    const auto last = static_cast<Signed>(by_stride_.divide(place));
    return {first, last < outputs_ ? last : outputs_ - 1};
  }

 private:
  Signed outputs_ = 1, stride_ = 1, padding_ = 0, reach_ = 0;
  bool adaptive_ = false;
  Divider<Index> by_inputs_{1}, by_outputs_{1}, by_stride_{1}, by_step_{1};
};

/// How images are counted whose places are numbers of type Place, int32_t or int64_t. Those of int64_t are of
/// T as they are.
template <class Place>
using IndexOf = std::conditional_t<std::is_same_v<Place, int32_t>, uint32_t, int64_t>;

/// Calls `f` with the type in which elements are stored.
template <class T, class Place, class F>
PLEAT_HOST_DEVICE void by_stored_type(DType dtype, const F& f) {
  if constexpr (std::is_same_v<Place, int32_t>)
    as_stored<T>(dtype, f);
  else
    f(Type<T>{});
}

/// What the functors have in common: a call is for a pixel of the result, in some channels.
template <class Index>
struct PoolPixels {
  Window<Index> depth, height, width;
  PixelOrderOf<Index> order;
  Index channels;
  std::array<Index, 5> result_step;
  bool flat;  ///< of one depth

  /// The pixel and the first channel of call i.
  PLEAT_HOST_DEVICE PixelOf<Index> at(int64_t i) const {
    PixelOf<Index> pixel = order.at(static_cast<Index>(i));
    pixel.channel *= vector_width;
    return pixel;
  }
};

/// The maxima of windows in x, and their places where these are wanted.
template <class T, class Place>
struct MaxPoolForward {
  using Index = IndexOf<Place>;
  using Signed = std::make_signed_t<Index>;
  PoolPixels<Index> pixels;
  std::array<Index, 5> x_step;
  LaneArray<Index> x, values, places;
  DType dtype;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    by_stored_type<T, Place>(dtype, [&]<class Stored>(Type<Stored>) { pixel_of<Stored>(i); });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void pixel_of(int64_t i) const {
    const PixelOf<Index> pixel = pixels.at(i);
    const Index left = pixels.channels - pixel.channel;
    const Index plane = pixel.image * x_step[0] + pixel.channel * x_step[1];
    const Window<Index>&depth = pixels.depth, &height = pixels.height, &width = pixels.width;
    const Signed first_h = height.begin(pixel.at[1]), end_h = height.end(pixel.at[1]);
    const Signed first_w = width.begin(pixel.at[2]), end_w = width.end(pixel.at[2]);
    Signed first_d = 0, end_d = 1;
    if (!pixels.flat) {
      first_d = depth.begin(pixel.at[0]);
      end_d = depth.end(pixel.at[0]);
    }
    const bool is_empty = first_d >= end_d || first_h >= end_h || first_w >= end_w;
    const Signed first = is_empty ? -1 : (first_d * height.inputs + first_h) * width.inputs + first_w;
    T best[lanes];
    Place place[lanes];
    PLEAT_UNROLL
    for (int k = 0; k < lanes; ++k) {
      best[k] = static_cast<T>(-HUGE_VAL);
      place[k] = static_cast<Place>(first);
    }
    PLEAT_ROLLED
    for (Signed d = first_d; d < end_d; d += depth.step) {
      PLEAT_ROLLED
      for (Signed h = first_h; h < end_h; h += height.step) {
        const Index row = plane + static_cast<Index>(d) * x_step[2] + static_cast<Index>(h) * x_step[3];
        const Signed first_place = (d * height.inputs + h) * width.inputs;
        PLEAT_ROLLED
        for (Signed w = first_w; w < end_w; w += width.step) {
          T value[lanes];
          x.template load<Stored>(row + static_cast<Index>(w) * x_step[4], left, value);
          const auto here = static_cast<Place>(first_place + w);
          PLEAT_UNROLL
          for (int k = 0; k < lanes; ++k) {
            const bool is_new = is_new_maximum(value[k], best[k]);
            best[k] = is_new ? value[k] : best[k];
            place[k] = is_new ? here : place[k];
          }
        }
      }
    }
    const Index to = pixel.offset(pixels.result_step);
    values.template store<Stored>(to, left, best);
    if (places.defined()) places.template store<Place>(to, left, place);
  }
};

/// The gradient dx, from the windows over each pixel. They are taken in order, so that the sum is that of
/// MaxPoolScatter.
template <class T, class Place>
struct MaxPoolBackward {
  using Index = IndexOf<Place>;
  using Signed = std::make_signed_t<Index>;
  PoolPixels<Index> pixels;
  std::array<Index, 5> dy_step, place_step;
  LaneArray<Index> dy, places, dx;
  DType dtype;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    by_stored_type<T, Place>(dtype, [&]<class Stored>(Type<Stored>) { pixel_of<Stored>(i); });
  }

 private:
  template <class Stored>
  PLEAT_HOST_DEVICE void pixel_of(int64_t i) const {
    const PixelOf<Index> pixel = pixels.at(i);
    const Index left = pixels.channels - pixel.channel;
    const auto [d, h, w] = pixel.at;
    const Window<Index>&depth = pixels.depth, &height = pixels.height, &width = pixels.width;
    const auto place = static_cast<Place>(
        (d * static_cast<Index>(height.inputs) + h) * static_cast<Index>(width.inputs) + w);
    const auto [first_h, last_h] = height.over(h);
    const auto [first_w, last_w] = width.over(w);
    PixelOf<Index> window = pixel;
    T sum[lanes] = {};
    typename Window<Index>::Over over_d{0, 0};
    if (!pixels.flat) over_d = depth.over(d);
    PLEAT_ROLLED
    for (Signed od = over_d.first; od <= over_d.last; ++od) {
      PLEAT_ROLLED
      for (Signed oh = first_h; oh <= last_h; ++oh) {
        PLEAT_ROLLED
        for (Signed ow = first_w; ow <= last_w; ++ow) {
          window.at = {static_cast<Index>(od), static_cast<Index>(oh), static_cast<Index>(ow)};
          Place found[lanes];
          T gradient[lanes];
          places.template load<Place>(window.offset(place_step), left, found);
          dy.template load<Stored>(window.offset(dy_step), left, gradient);
          PLEAT_UNROLL
          for (int k = 0; k < lanes; ++k)
            if (found[k] == place) sum[k] += gradient[k];
        }
      }
    }
    dx.template store<Stored>(pixel.offset(pixels.result_step), left, sum);
  }
};

/// Some channels of one image: dx becomes zero, then gets each dy at the place that its index names. Outputs
/// are taken in order, so the sums are the same in every layout.
template <class T, class Index>
struct MaxPoolScatter {
  PlaneSteps in, out;
  const T* dy;
  const Index* indices;
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t n, int64_t first_channel, int64_t last_channel) const {
    if (in.channel_step == 1 && out.channel_step == 1) return pixels(n, first_channel, last_channel);
    for (int64_t c = first_channel; c < last_channel; ++c) plane(in.at(n, c, 0), out.at(n, c, 0));
  }

 private:
  PLEAT_HOST_DEVICE void plane(int64_t to, int64_t from) const {
    for (int64_t p = 0; p < in.pixels; ++p) dx[to + p] = T(0);
    for (int64_t p = from; p < from + out.pixels; ++p)
      if (indices[p] >= 0) dx[to + indices[p]] += dy[p];
  }

  PLEAT_HOST_DEVICE void pixels(int64_t n, int64_t first_channel, int64_t last_channel) const {
    const int64_t to = in.at(n, 0, 0);
    const int64_t row = last_channel - first_channel == in.channels ? in.channels * in.pixels : in.channels;
    for (int64_t at = to; at < to + in.channels * in.pixels; at += row)
      for (int64_t i = first_channel; i < row - in.channels + last_channel; ++i) dx[at + i] = T(0);
    for (int64_t p = 0; p < out.pixels; ++p) {
      const int64_t from = out.at(n, 0, p);
      for (int64_t c = first_channel; c < last_channel; ++c) {
        const int64_t place = indices[from + c];
        if (place >= 0) dx[to + place * in.channels + c] += dy[from + c];
      }
    }
  }
};

/// The other way: one element of y a call, which gets what its index names in x. i counts as y and the
/// indices lie in memory. T is of an element's size.
template <class T>
struct MaxPoolGather {
  PlaneSteps in;
  PixelOrder order;
  const T* x;
  const int32_t* indices;
  const int64_t* wide;  ///< the indices, where they are of 64 bits
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const int64_t place = wide == nullptr ? indices[i] : wide[i];
    y[i] = place >= 0 ? x[in.at(pixel.image, pixel.channel, place)] : T(0);
  }
};

/// The indices of a window, counted by 32 bits; 1 in `outside` where one is not in the window.
struct PlacesInWindow {
  PoolPixels<uint32_t> windows;
  std::array<uint32_t, 5> index_step;
  LaneArray<uint32_t> indices, places;
  int64_t pixels;                   ///< of the image
  Divider<uint32_t> height, width;  ///< likewise
  int32_t* outside;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const PixelOf<uint32_t> window = windows.at(i);
    const uint32_t left = windows.channels - window.channel;
    const auto [d, h, w] = window.at;
    const int32_t first[3] = {windows.depth.begin(d), windows.height.begin(h), windows.width.begin(w)};
    const int32_t end[3] = {windows.depth.end(d), windows.height.end(h), windows.width.end(w)};
    int64_t index[lanes];
    indices.load<int64_t>(window.offset(index_step), left, index);
    int32_t place[lanes];
    bool inside = true;
    PLEAT_UNROLL
    for (int k = 0; k < lanes; ++k) {
      inside = inside && index[k] >= 0 && index[k] < pixels;
      auto column = static_cast<uint32_t>(index[k]);
      place[k] = static_cast<int32_t>(column);
      uint32_t row = width.divide(column);
      const auto plane = static_cast<int32_t>(height.divide(row));
      const auto y = static_cast<int32_t>(row), x = static_cast<int32_t>(column);
      inside = inside && plane >= first[0] && plane < end[0] && y >= first[1] && y < end[1] &&
               x >= first[2] && x < end[2];
    }
    places.store<int32_t>(window.offset(windows.result_step), left, place);
    if (!inside) *outside = 1;  // all writers write the same
  }
};

/// Calls `f` with the types in which values (float or double) and indices (int32 or int64) are computed.
template <class F>
void dispatch_types(DType values, DType indices, const F& f) {
  const auto with_values = [&]<class T>(Type<T> type) {
    if (indices == int32)
      f(type, Type<int32_t>{});
    else
      f(type, Type<int64_t>{});
  };
  if (values == float64)
    with_values(Type<double>{});
  else
    with_values(Type<float>{});
}

/// Steps of a dense tensor [N, C, spatial...]; `channels_last` is its format, which a plane of one pixel
/// does not.
inline PlaneSteps plane_steps(const Tensor& t, bool channels_last) {
  const int64_t channels = t.size(1);
  int64_t pixels = 1;
  for (int64_t d = 2; d < t.rank(); ++d) pixels *= t.size(d);
  if (channels_last) return {channels, pixels, channels * pixels, 1, channels};
  return {channels, pixels, channels * pixels, pixels, 1};
}

/// On the CPU: the maxima over the windows of x, and their places unless `indices` is null. Both tensors have
/// one layout.
template <class T, class Index>
void max_pool_on_cpu(const WindowRules& windows, int64_t images, const PlaneSteps& in, const PlaneSteps& out,
                     const T* x, T* values, Index* indices);
/// The gradient `dx` of that.
template <class T, class Index>
void max_pool_backward_on_cpu(int64_t images, const MaxPoolScatter<T, Index>& scatter);

}  // namespace pleat::ops
