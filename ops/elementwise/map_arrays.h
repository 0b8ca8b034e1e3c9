// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/simd.h"

/// The loop over plain arrays in which functors run on the CPU.

namespace pleat::ops {

/// y[i] = f(in[i]...).
template <class Out, class F, class... In>
void map_inputs(Out* y, int64_t n, const F& f, const In*... in) {
  PLEAT_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = f(in[i]...);
}
template <class Out, class A, class F>
void map(Out* y, const A* a, int64_t n, const F& f) {
  map_inputs(y, n, f, a);
}
template <class Out, class A, class B, class F>
void map(Out* y, const A* a, const B* b, int64_t n, const F& f) {
  map_inputs(y, n, f, a, b);
}
template <class Out, class A, class B, class C, class F>
void map(Out* y, const A* a, const B* b, const C* c, int64_t n, const F& f) {
  map_inputs(y, n, f, a, b, c);
}

}  // namespace pleat::ops
