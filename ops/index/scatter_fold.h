// Private header: not installed.
#pragma once

#include <cstddef>

#include "pleat/core/base/host_device.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"

namespace pleat::ops {

/// What becomes of an element and of one that meets it.
enum class ScatterFold : unsigned char { sum, prod, amax, amin };

/// The larger of two; NaN where either is.
struct LargerOf {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct SmallerOf {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};

/// Calls `f` with the functor.
template <class F>
void dispatch_fold(ScatterFold fold, const F& f) {
  switch (fold) {
    case ScatterFold::sum:
      return f(Plus{});
    case ScatterFold::prod:
      return f(Times{});
    case ScatterFold::amax:
      return f(LargerOf{});
    case ScatterFold::amin:
      return f(SmallerOf{});
  }
}

/// Folds source's elements into y at their places along a dimension, each line in its order. Places,
/// row-major, are checked; y has no gaps and a type that is computed in; `source`, of the places' shape,
/// shares no element with y and has its type.
void scatter_fold_into(const char* op, const Tensor& y, std::size_t along, const Tensor& places,
                       const Tensor& source, ScatterFold fold);

}  // namespace pleat::ops
