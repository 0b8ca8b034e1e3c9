// Private header: not installed.
#pragma once

#include <cstdint>

/// The loop over plain arrays in which functors run on the CPU.

namespace pleat::ops {

// Arrays may be the same one (in place), but never overlap otherwise: iterations are independent.
#if defined(__clang__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define PLEAT_INDEPENDENT_ITERATIONS
#endif

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

#undef PLEAT_INDEPENDENT_ITERATIONS

}  // namespace pleat::ops
