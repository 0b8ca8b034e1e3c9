// Private header: not installed.
#pragma once

#include "pleat/core/shape.h"
#include "pleat/ops/pool/max_pool_functors.h"

namespace pleat::ops {

/// Calls `f` with the types in which values (float or double) and indices (int32 or int64) are computed.
template <class F>
void dispatch_types(DType values, DType indices, const F& f) {
  const auto with_values = [&]<class T>(Type<T> type) {
    if (indices == int32)
      f(type, Type<int32_t>{});
    else
      f(type, Type<int64_t>{});
  };
  if (values == float64)
    with_values(Type<double>{});
  else
    with_values(Type<float>{});
}

/// Steps of a dense tensor [N, C, spatial...]; `channels_last` says how it lies, which a plane of one pixel
/// does not.
inline PlaneSteps plane_steps(const Tensor& t, bool channels_last) {
  const int64_t channels = t.size(1);
  int64_t pixels = 1;
  for (int64_t d = 2; d < t.rank(); ++d) pixels *= t.size(d);
  if (channels_last) return {channels, pixels, channels * pixels, 1, channels};
  return {channels, pixels, channels * pixels, pixels, 1};
}

}  // namespace pleat::ops
