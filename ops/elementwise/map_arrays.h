// Private header: not installed.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/simd.h"
#include "pleat/ops/elementwise/vector_math.h"

/// The loop over plain arrays in which functors run on the CPU.

namespace pleat::ops {

/// A functor that holds only where its `is_near` of the inputs is true, as sin; elsewhere its formula is
/// computed in vmath::Wide.
template <class F, class... In>
concept HoldsNear = requires(const F f, In... in) {
  f.is_near(in...);
};

/// y[i] = f(in[i]...) for pointers, or what else has elements. The functor is a copy: what stands behind a
/// reference may not be read where a branch is not taken, so that the compiler would have to keep the branch.
template <class Out, class F, class... In>
void map_inputs(Out* y, int64_t n, const F f, const In... in) {
  if constexpr (HoldsNear<F, std::remove_cvref_t<decltype(in[0])>...>) {
    constexpr int64_t block = 256;
    for (int64_t first = 0; first < n; first += block) {
      const int64_t last = std::min(n, first + block);
      int far = 0;
      for (int64_t i = first; i < last; ++i) far |= f.is_near(in[i]...) ? 0 : 1;
      if (far != 0) {
        for (int64_t i = first; i < last; ++i)
          y[i] = f.is_near(in[i]...) ? f(in[i]...) : static_cast<Out>(f(static_cast<vmath::Wide>(in[i])...));
        continue;
      }
      PLEAT_INDEPENDENT_ITERATIONS
      for (int64_t i = first; i < last; ++i) y[i] = f(in[i]...);
    }
  } else {
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) y[i] = f(in[i]...);
  }
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
