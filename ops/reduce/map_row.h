// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/simd.h"

namespace pleat::ops::reduction {

/// y[i] = f(in[i]...) for the n elements of a row, by a functor that takes vectors and numbers: a loop that
/// the compiler vectorises itself takes the last elements one by one, which is much of a short row. y may be
/// an input.
template <class T, class F, class... In>
void map_row(T* y, int64_t n, const F& f, const In*... in) {
  constexpr int64_t lanes = simd::lanes<T>;
  if (n < lanes) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(in[i]...);
    return;
  }
  // What is left is part of a last vector, which is read before any of it is written.
  const simd::Vector<T> last = f(simd::load(in + n - lanes)...);
  for (int64_t i = 0; i + lanes <= n; i += lanes)
    simd::store(y + i, simd::Vector<T>(f(simd::load(in + i)...)));
  simd::store(y + n - lanes, last);
}

}  // namespace pleat::ops::reduction
