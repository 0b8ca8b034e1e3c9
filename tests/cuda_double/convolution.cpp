#include "convolution.h"

#include <Eigen/Core>

namespace cuda_double {
namespace {

template <class T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

int64_t pixels(const TensorView& t) { return t.sizes[2] * t.sizes[3] * t.sizes[4]; }

int64_t place(const TensorView& t, int64_t outer, int64_t channel, int64_t pixel) {
  const int64_t w = pixel % t.sizes[4];
  const int64_t h = pixel / t.sizes[4] % t.sizes[3];
  const int64_t d = pixel / t.sizes[4] / t.sizes[3];
  return outer * t.strides[0] + channel * t.strides[1] + d * t.strides[2] + h * t.strides[3] +
         w * t.strides[4];
}

/// [channels, pixels] of one image, or of the filters with `outer` and `channel` exchanged.
template <class T>
Rows<T> image(const Convolution& c, const TensorView& t, int64_t outer, int64_t first, int64_t channels) {
  Rows<T> result(channels, pixels(t));
  for (int64_t k = 0; k < channels; ++k)
    for (int64_t p = 0; p < pixels(t); ++p) {
      const double value = read_number(t.type, t.memory, place(t, outer, first + k, p));
      result(k, p) = static_cast<T>(c.mantissa_bits > 0 ? rounded_to_bits(value, c.mantissa_bits) : value);
    }
  return result;
}

/// Filters first ... first + count - 1 as [count, (C / groups) * window].
template <class T>
Rows<T> filters(const Convolution& c, int64_t first, int64_t count) {
  const int64_t window = pixels(c.w);
  Rows<T> result(count, c.w.sizes[1] * window);
  for (int64_t k = 0; k < count; ++k) {
    const Rows<T> one = image<T>(c, c.w, first + k, 0, c.w.sizes[1]);
    for (int64_t i = 0; i < one.size(); ++i) result(k, i) = one.data()[i];
  }
  return result;
}

/// Calls `at(row of the unfolded image, output pixel, channel, input pixel)` for what lies inside of the
/// image.
template <class At>
void for_each_place(const Convolution& c, int64_t channels, const At& at) {
  const auto& in = c.x.sizes;
  const auto& kernel = c.w.sizes;
  const auto& out = c.y.sizes;
  int64_t row = 0;
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t a = 0; a < kernel[2]; ++a)
      for (int64_t b = 0; b < kernel[3]; ++b)
        for (int64_t e = 0; e < kernel[4]; ++e, ++row)
          for (int64_t od = 0; od < out[2]; ++od) {
            const int64_t d = od * c.stride[0] - c.padding[0] + a * c.dilation[0];
            if (d < 0 || d >= in[2]) continue;
            for (int64_t oh = 0; oh < out[3]; ++oh) {
              const int64_t h = oh * c.stride[1] - c.padding[1] + b * c.dilation[1];
              if (h < 0 || h >= in[3]) continue;
              for (int64_t ow = 0; ow < out[4]; ++ow) {
                const int64_t w = ow * c.stride[2] - c.padding[2] + e * c.dilation[2];
                if (w < 0 || w >= in[4]) continue;
                at(row, (od * out[3] + oh) * out[4] + ow, channel, (d * in[3] + h) * in[4] + w);
              }
            }
          }
}

void put(const Convolution& c, const TensorView& t, int64_t to, double value) {
  double result = c.alpha * value;
  if (c.beta != 0) result += c.beta * read_number(t.type, t.memory, to);
  write_number(t.type, t.memory, to, result);
}

template <class T>
void compute(const Convolution& c) {
  const int64_t in_group = c.w.sizes[1];
  const int64_t groups = c.x.sizes[1] / in_group;
  const int64_t out_group = c.w.sizes[0] / groups;
  const int64_t window = pixels(c.w);
  for (int64_t g = 0; g < groups; ++g) {
    const Rows<T> w = c.pass == Pass::backward_filter ? Rows<T>() : filters<T>(c, g * out_group, out_group);
    Rows<T> dw = Rows<T>::Zero(out_group, in_group * window);
    for (int64_t n = 0; n < c.x.sizes[0]; ++n) {
      Rows<T> columns = Rows<T>::Zero(in_group * window, pixels(c.y));
      if (c.pass == Pass::backward_data) {
        columns.noalias() = w.transpose() * image<T>(c, c.y, n, g * out_group, out_group);
        Rows<T> dx = Rows<T>::Zero(in_group, pixels(c.x));
        for_each_place(c, in_group, [&](int64_t row, int64_t out, int64_t channel, int64_t in) {
          dx(channel, in) += columns(row, out);
        });
        for (int64_t k = 0; k < in_group; ++k)
          for (int64_t p = 0; p < pixels(c.x); ++p)
            put(c, c.x, place(c.x, n, g * in_group + k, p), static_cast<double>(dx(k, p)));
        continue;
      }
      const Rows<T> x = image<T>(c, c.x, n, g * in_group, in_group);
      for_each_place(c, in_group, [&](int64_t row, int64_t out, int64_t channel, int64_t in) {
        columns(row, out) = x(channel, in);
      });
      if (c.pass == Pass::backward_filter) {
        dw.noalias() += image<T>(c, c.y, n, g * out_group, out_group) * columns.transpose();
        continue;
      }
      const Rows<T> y = w * columns;
      for (int64_t k = 0; k < out_group; ++k) {
        const int64_t channel = g * out_group + k;
        const double bias = c.bias.memory == nullptr
                                ? 0
                                : read_number(c.bias.type, c.bias.memory, channel * c.bias.strides[1]);
        for (int64_t p = 0; p < pixels(c.y); ++p)
          put(c, c.y, place(c.y, n, channel, p), static_cast<double>(y(k, p)) + bias);
      }
    }
    if (c.pass == Pass::backward_filter)
      for (int64_t k = 0; k < out_group; ++k)
        for (int64_t i = 0; i < in_group * window; ++i)
          put(c, c.w, place(c.w, g * out_group + k, i / window, i % window), static_cast<double>(dw(k, i)));
  }
}

}  // namespace

void convolve(const Convolution& c) {
  if (c.in_double)
    compute<double>(c);
  else
    compute<float>(c);
}

}  // namespace cuda_double
