// Private header: not installed.
#pragma once

#include "pleat/core/tensor/dtype.h"

/// The type in which reductions and scans read numbers.

namespace pleat::ops::reduction {

/// Calls `f(Type<T>{})` with float, double or int64: the types in which numbers are read.
template <class F>
decltype(auto) dispatch_read(DType dtype, F&& f) {
  if (dtype == float64) return f(Type<double>{});
  if (is_floating(dtype)) return f(Type<float>{});
  return f(Type<int64_t>{});
}

/// The same for results that are floating: integers are read as double and give float32.
template <class F>
decltype(auto) dispatch_read_floating(DType dtype, F&& f) {
  if (is_floating(dtype) && dtype != float64) return f(Type<float>{});
  return f(Type<double>{});
}

}  // namespace pleat::ops::reduction
