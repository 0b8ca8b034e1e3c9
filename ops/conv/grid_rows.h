// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/fast_divider.h"
#include "pleat/ops/conv/problem.h"

/// Where the threads of a grid are in a convolution of channels-last rows.

namespace pleat::ops {

/// Splits a row into its pixel [n, d, h, w].
struct PixelOf {
  FastDivider d, h, w;

  explicit PixelOf(const Spatial& sizes) : d(sizes[0]), h(sizes[1]), w(sizes[2]) {}

  struct Place {
    int64_t n, d, h, w;
  };
  PLEAT_HOST_DEVICE Place operator()(int64_t row) const {
    Place place{};
    int64_t rest = row;
    row = w.divide(rest);
    place.w = rest;
    rest = row;
    row = h.divide(rest);
    place.h = rest;
    place.n = d.divide(row);
    place.d = row;
    return place;
  }
};

/// Where a window's taps lie in the input: what ConvProblem says, as far as kernels need it.
struct Window {
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];

  explicit Window(const ConvProblem& p) {
    for (std::size_t i = 0; i < 3; ++i) {
      input[i] = p.input[i];
      output[i] = p.output[i];
      kernel[i] = p.kernel[i];
      stride[i] = p.stride[i];
      padding[i] = p.padding_low[i];
      dilation[i] = p.dilation[i];
    }
  }

  /// The input index that tap `tap` of output `o` reads in dimension `dim`, or -1 in the padding.
  PLEAT_HOST_DEVICE int64_t input_of(int dim, int64_t o, int64_t tap) const {
    const int64_t i = o * stride[dim] - padding[dim] + tap * dilation[dim];
    return i >= 0 && i < input[dim] ? i : -1;
  }
  /// The output whose tap `tap` reads input `i` in dimension `dim`, or -1 when there is none.
  PLEAT_HOST_DEVICE int64_t output_of(int dim, int64_t i, int64_t tap) const {
    const int64_t shifted = i + padding[dim] - tap * dilation[dim];
    if (shifted < 0 || shifted % stride[dim] != 0) return -1;
    const int64_t o = shifted / stride[dim];
    return o < output[dim] ? o : -1;
  }
  PLEAT_HOST_DEVICE int64_t input_pixel(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return ((n * input[0] + d) * input[1] + h) * input[2] + w;
  }
  PLEAT_HOST_DEVICE int64_t output_pixel(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return ((n * output[0] + d) * output[1] + h) * output[2] + w;
  }
};

}  // namespace pleat::ops
