// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>

#include "pleat/core/host_device.h"

/// The index arithmetic of max pooling.

namespace pleat::ops {

/// Windows along one dimension as plain arrays.
struct WindowsView {
  int64_t inputs, outputs, step;
  const int64_t* begin;
  const int64_t* end;
};

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

/// One output a call: i counts [images, channels, pixels] in row-major order.
template <class T, class Index>
struct MaxPoolForward {
  WindowsView windows[3];
  PlaneSteps in, out;
  const T* x;
  T* values;
  Index* indices;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t pixel = i % out.pixels;
    const int64_t c = i / out.pixels % out.channels;
    const int64_t n = i / out.pixels / out.channels;
    const int64_t ow = pixel % windows[2].outputs;
    const int64_t oh = pixel / windows[2].outputs % windows[1].outputs;
    const int64_t od = pixel / windows[2].outputs / windows[1].outputs;
    T best = static_cast<T>(-HUGE_VAL);
    Index index = -1;
    for (int64_t d = windows[0].begin[od]; d < windows[0].end[od]; d += windows[0].step)
      for (int64_t h = windows[1].begin[oh]; h < windows[1].end[oh]; h += windows[1].step)
        for (int64_t w = windows[2].begin[ow]; w < windows[2].end[ow]; w += windows[2].step) {
          const int64_t place = (d * windows[1].inputs + h) * windows[2].inputs + w;
          const T value = x[in.at(n, c, place)];
          if (index < 0 || is_new_maximum(value, best)) {
            best = value;
            index = static_cast<Index>(place);
          }
        }
    values[out.at(n, c, pixel)] = best;
    indices[out.at(n, c, pixel)] = index;
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
    for (int64_t p = 0; p < in.pixels; ++p)
      for (int64_t c = first_channel; c < last_channel; ++c) dx[to + p * in.channels + c] = T(0);
    for (int64_t p = 0; p < out.pixels; ++p) {
      const int64_t from = out.at(n, 0, p);
      for (int64_t c = first_channel; c < last_channel; ++c) {
        const int64_t place = indices[from + c];
        if (place >= 0) dx[to + place * in.channels + c] += dy[from + c];
      }
    }
  }
};

/// The same channels the other way: y gets what the indices name in x.
template <class T, class Index>
struct MaxPoolGather {
  PlaneSteps in, out;
  const T* x;
  const Index* indices;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t n, int64_t first_channel, int64_t last_channel) const {
    for (int64_t p = 0; p < out.pixels; ++p)
      for (int64_t c = first_channel; c < last_channel; ++c) {
        const int64_t to = out.at(n, c, p);
        y[to] = indices[to] >= 0 ? x[in.at(n, c, indices[to])] : T(0);
      }
  }
};

}  // namespace pleat::ops
