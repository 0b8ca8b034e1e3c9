// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pleat/ops/softmax/short_lines.h"

/// The sum of a line's exponentials, for softmax and the class losses. For files with kernels only.

namespace pleat::ops {

/// e^x of what is stored as a Stored: of half types by the instruction for it, whose error is far below
/// theirs.
template <class Stored, class T>
__device__ T exp_of(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Stored) == 2) return __expf(x);
#endif
  return std::exp(x);
}

/// Its inverse.
template <class Stored>
__device__ double log_of(double x) {
  if constexpr (sizeof(Stored) == 2) return static_cast<double>(std::log(static_cast<float>(x)));
  return std::log(x);
}

/// The sum of exp(x - shift) over a line, and the shift: the largest x, or 0 where all are -infinity.
template <class T>
struct LineSum {
  T shift = 0;
  double sum = 0;
};

/// The LineSum of x, for all threads of the line's team. `use(start, held, line sum)` is called for each
/// part, with exp(x - shift) or, if `logarithm`, x - shift.
template <class T, class Stored, class Own, class Use>
__device__ LineSum<T> sum_exponentials(const Own& own, const Stored* x, bool logarithm, const Use& use) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const auto shift_of = [](T largest) { return largest == -infinity ? T(0) : largest; };
  T largest = -infinity;
  LineSum<T> line;
  const auto merge = [&] {
    own.merge(largest, [](T& into, T other) { into = std::fmax(into, other); });
    line.shift = shift_of(largest);
  };
  const auto take = [&](int64_t start, auto& held) {
    own.load(start, held, x, -infinity);
    // A NaN shows in the sum.
    own.for_held(start, held, [&](int k) { largest = std::fmax(largest, held.of[k]); });
  };
  const auto raise = [&](int64_t start, auto& held) {
    // Of half types float32 is exact enough for the few of a thread.
    std::conditional_t<sizeof(Stored) == 2, T, double> sum = 0;
    own.for_held(start, held, [&](int k) {
      held.of[k] -= line.shift;
      const T e = exp_of<Stored>(held.of[k]);
      sum += e;
      if (!logarithm) held.of[k] = e;
    });
    line.sum += static_cast<double>(sum);
  };
  const auto finish = [&] {
    if (largest == infinity) {
      // Infinity less itself is a NaN, too, which no element need be.
      line.sum = static_cast<double>(infinity);
      own.for_all(x, [&](T element) {
        if (element != element) line.sum = static_cast<double>(element);
      });
    }
    own.merge(line.sum, [](double& into, double other) { into += other; });
  };
  const auto hold = [&] {
    HeldLine<T> held;
    take(0, held);
    merge();
    raise(0, held);
    finish();
    use(0, held, line);
    return line;
  };
  if constexpr (is_short_line<Own>) {
    return hold();
  } else {
    if (own.lines.are_held()) return hold();
    const auto follow = [&](T before) {
      if (line.sum != 0 && before != line.shift)
        line.sum *= std::exp(static_cast<double>(before) - static_cast<double>(line.shift));
    };
    own.for_parts([&](int64_t start, auto& held) {
      const T before = line.shift;
      take(start, held);
      line.shift = shift_of(largest);
      follow(before);
      raise(start, held);
    });
    const T before = line.shift;
    merge();
    follow(before);
    finish();
    const LineSum<T> found = line;
    own.for_parts([&](int64_t start, auto& held) {
      own.load(start, held, x, -infinity);
      raise(start, held);
      use(start, held, found);
    });
    return found;
  }
}

}  // namespace pleat::ops
