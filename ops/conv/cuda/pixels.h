// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <type_traits>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/matmul/gemm.h"

/// What the kernels of convolutions on a GPU share: the types of elements and sums (half types are read and
/// written as they are, their sums are float), and where the threads of a launch are in a convolution.

namespace pleat::ops {

/// Splits a row into its pixel [n, d, h, w].
struct PixelOf {
  FastDivider d, h, w;

  explicit PixelOf(const Spatial& sizes) : d(sizes[0]), h(sizes[1]), w(sizes[2]) {}

  struct Pixel {
    int64_t n, d, h, w;
  };
  PLEAT_HOST_DEVICE Pixel operator()(int64_t row) const {
    Pixel pixel{};
    int64_t rest = row;
    row = w.divide(rest);
    pixel.w = rest;
    rest = row;
    row = h.divide(rest);
    pixel.h = rest;
    pixel.n = d.divide(row);
    pixel.d = row;
    return pixel;
  }
};

/// The number from 0 to m - 1 by which a is 1 modulo m; a and m have no common divisor. Euclid's algorithm.
inline int64_t inverse_modulo(int64_t a, int64_t m) {
  int64_t rest = m, next = a % m;
  int64_t result = 0, factor = 1;
  while (next != 0) {
    const int64_t quotient = rest / next;
    rest = std::exchange(next, rest - quotient * next);
    result = std::exchange(factor, result - quotient * factor);
  }
  return result < 0 ? result + m : result;
}

/// Where a window's taps lie in the input: the part of ConvProblem that kernels need.
struct Window {
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];
  /// Of stride and dilation: their greatest common divisor; stride / divisor; and the number by which
  /// dilation / divisor is 1 modulo that.
  int64_t divisor[3], tap_step[3], inverse[3];

  explicit Window(const ConvProblem& p) {
    for (std::size_t i = 0; i < 3; ++i) {
      input[i] = p.input[i];
      output[i] = p.output[i];
      kernel[i] = p.kernel[i];
      // One output has no step to the next, one tap none either: what was asked for may be any number.
      stride[i] = p.output[i] == 1 ? 1 : p.stride[i];
      padding[i] = p.padding_low[i];
      dilation[i] = p.kernel[i] == 1 ? 1 : p.dilation[i];
      divisor[i] = std::gcd(stride[i], dilation[i]);
      tap_step[i] = stride[i] / divisor[i];
      check<ValueError>(tap_step[i] < int64_t{1} << 32, "conv: a stride of {} is too large here; at most {}",
                        stride[i], (int64_t{1} << 32) - 1);
      inverse[i] = inverse_modulo(dilation[i] / divisor[i], tap_step[i]);
    }
  }

  /// The input index that tap `tap` of output `o` reads in dimension `dim`, or -1 in the padding.
  PLEAT_HOST_DEVICE int64_t input_of(int dim, int64_t o, int64_t tap) const {
    const int64_t i = o * stride[dim] - padding[dim] + tap * dilation[dim];
    return i >= 0 && i < input[dim] ? i : -1;
  }
  /// The first of the taps that read input `i` in dimension `dim`: t * dilation = i + padding modulo the
  /// stride. The others follow every `tap_step`. The kernel's size, or more, where there is none.
  PLEAT_HOST_DEVICE int64_t first_tap(int dim, int64_t i) const {
    const int64_t shifted = i + padding[dim];
    if (tap_step[dim] == 1 && divisor[dim] == 1) return 0;
    if (shifted % divisor[dim] != 0) return kernel[dim];
    // Both factors lie below 2^32.
    const auto product =
        static_cast<uint64_t>(shifted / divisor[dim] % tap_step[dim]) * static_cast<uint64_t>(inverse[dim]);
    return static_cast<int64_t>(product % static_cast<uint64_t>(tap_step[dim]));
  }
  /// Calls f(tap, input pixel of the image) for the taps of output [d, h, w] that are not in the padding.
  template <class F>
  PLEAT_HOST_DEVICE void for_each_tap(int64_t d, int64_t h, int64_t w, const F& f) const {
    for (int64_t t = 0; t < kernel[0]; ++t) {
      const int64_t from_d = input_of(0, d, t);
      if (from_d < 0) continue;
      for (int64_t r = 0; r < kernel[1]; ++r) {
        const int64_t from_h = input_of(1, h, r);
        if (from_h < 0) continue;
        for (int64_t s = 0; s < kernel[2]; ++s) {
          const int64_t from_w = input_of(2, w, s);
          if (from_w >= 0) f((t * kernel[1] + r) * kernel[2] + s, input_pixel(0, from_d, from_h, from_w));
        }
      }
    }
  }
  /// The taps that read input `i` in dimension `dim`, and of which output: the first, and the steps to the
  /// next; outputs that there are not among them.
  struct Readers {
    int64_t tap, output, tap_step, output_step;
  };
  PLEAT_HOST_DEVICE Readers readers(int dim, int64_t i) const {
    const int64_t tap = first_tap(dim, i);
    const int64_t shifted = i + padding[dim] - tap * dilation[dim];
    return {tap, stride[dim] == 1 ? shifted : shifted / stride[dim], tap_step[dim],
            dilation[dim] / divisor[dim]};
  }
  /// Calls f(tap, output pixel of the image) for the taps that read input [d, h, w].
  template <class F>
  PLEAT_HOST_DEVICE void for_each_reader(int64_t d, int64_t h, int64_t w, const F& f) const {
    const Readers of_w = readers(2, w);
    const Readers of_h = readers(1, h);
    Readers t = readers(0, d);
    for (; t.tap < kernel[0]; t.tap += t.tap_step, t.output -= t.output_step) {
      if (static_cast<uint64_t>(t.output) >= static_cast<uint64_t>(output[0])) continue;
      Readers r = of_h;
      for (; r.tap < kernel[1]; r.tap += r.tap_step, r.output -= r.output_step) {
        if (static_cast<uint64_t>(r.output) >= static_cast<uint64_t>(output[1])) continue;
        const int64_t taps = (t.tap * kernel[1] + r.tap) * kernel[2];
        const int64_t line = (t.output * output[1] + r.output) * output[2];
        Readers s = of_w;
        for (; s.tap < kernel[2]; s.tap += s.tap_step, s.output -= s.output_step)
          if (static_cast<uint64_t>(s.output) < static_cast<uint64_t>(output[2]))
            f(taps + s.tap, line + s.output);
      }
    }
  }

  PLEAT_HOST_DEVICE int64_t input_pixel(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return ((n * input[0] + d) * input[1] + h) * input[2] + w;
  }
  PLEAT_HOST_DEVICE int64_t output_pixel(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return ((n * output[0] + d) * output[1] + h) * output[2] + w;
  }
};

}  // namespace pleat::ops

namespace pleat::ops::cuda_conv {

/// Begins the messages of launches.
inline constexpr const char* op = "conv";

/// The type in which elements of type T are added up.
template <class T>
using Sum = typename Gemm<T>::Scale;

/// Bytes of an element of the problem, and of its sums.
inline int64_t element_bytes(const ConvProblem& p) { return size_of(p.dtype); }
inline int64_t sum_bytes(const ConvProblem& p) { return size_of(compute_dtype(p.dtype)); }

template <class T>
Tensor scratch_on(Device device, int64_t elements) {
  return empty({elements}, {.dtype = dtype_of<T>(), .device = device});
}

/// Calls `f(Type<T>{})` with the type of a problem's tensors.
template <class F>
void by_stored_type(const ConvProblem& problem, F f) {
  switch (problem.dtype) {
    case float64:
      return f(Type<double>{});
    case float16:
      return f(Type<Half>{});
    case bfloat16:
      return f(Type<BFloat16>{});
    default:
      return f(Type<float>{});
  }
}

/// Calls `f(std::integral_constant<std::size_t, width>{})` with how many of `count` neighbouring elements are
/// moved at once: `wide` where their number and the addresses allow it, else 1.
template <std::size_t wide, class T, class F>
void by_width(int64_t count, std::initializer_list<const T*> data, const F& f) {
  bool can = count % static_cast<int64_t>(wide) == 0;
  for (const T* pointer : data)
    can = can && reinterpret_cast<std::uintptr_t>(pointer) % (wide * sizeof(T)) == 0;
  if (can)
    f(std::integral_constant<std::size_t, wide>{});
  else
    f(std::integral_constant<std::size_t, 1>{});
}

}  // namespace pleat::ops::cuda_conv
