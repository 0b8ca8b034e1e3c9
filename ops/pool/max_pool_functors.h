// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>

#include "pleat/core/kernels/number_array.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/ops/pool/kernels.h"
#include "pleat/ops/spatial/pixel_order.h"

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
  return (value > best) | ((value != value) & (best == best));
}

/// One output a call; i counts as values and indices lie in memory, both alike.
template <class T, class Index>
struct MaxPoolForward {
  WindowRules windows;
  PixelOrder order;
  ImageSteps x_step;
  NumberArray<T> x;
  NumberArray<T> values;
  Index* indices;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const auto [od, oh, ow] = pixel.at;
    const int64_t plane = pixel.image * x_step[0] + pixel.channel * x_step[1];
    T best = static_cast<T>(-HUGE_VAL);
    int64_t index = -1;
    for (int64_t d = windows[0].begin(od); d < windows[0].end(od); d += windows[0].step)
      for (int64_t h = windows[1].begin(oh); h < windows[1].end(oh); h += windows[1].step)
        for (int64_t w = windows[2].begin(ow); w < windows[2].end(ow); w += windows[2].step) {
          const T value = x.load(plane + d * x_step[2] + h * x_step[3] + w * x_step[4]);
          if (index < 0 || is_new_maximum(value, best)) {
            best = value;
            index = (d * windows[1].inputs + h) * windows[2].inputs + w;
          }
        }
    values.store(i, best);
    indices[i] = static_cast<Index>(index);
  }
};

/// One element of dx a call, from the windows over it; i counts as dx lies in memory. They are taken in
/// order, so that the sum is that of MaxPoolScatter.
template <class T, class Index>
struct MaxPoolBackward {
  WindowRules windows;
  PixelOrder order;
  ImageSteps dy_step, index_step;
  NumberArray<T> dy;
  const Index* indices;
  NumberArray<T> dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    const auto [d, h, w] = pixel.at;
    const int64_t place = (d * windows[1].inputs + h) * windows[2].inputs + w;
    Pixel window = pixel;
    T sum = 0;
    for (int64_t od = windows[0].first_over(d); od <= windows[0].last_over(d); ++od)
      for (int64_t oh = windows[1].first_over(h); oh <= windows[1].last_over(h); ++oh)
        for (int64_t ow = windows[2].first_over(w); ow <= windows[2].last_over(w); ++ow) {
          window.at = {od, oh, ow};
          if (indices[window.offset(index_step)] == place) sum += dy.load(window.offset(dy_step));
        }
    dx.store(i, sum);
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
/// indices lie in memory.
template <class T, class Index>
struct MaxPoolGather {
  PlaneSteps in;
  PixelOrder order;
  const T* x;
  const Index* indices;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Pixel pixel = order.at(i);
    y[i] = indices[i] >= 0 ? x[in.at(pixel.image, pixel.channel, indices[i])] : T(0);
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
