// Private header: not installed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pleat/core/device.h"
#include "pleat/core/grid_elementwise.h"

/// Numbers at equal distances: element i is start + i * step, as V, stored in any type.

namespace pleat {

template <class V>
struct RampElement {
  V start, step;
  int64_t last;  ///< the element that is `end`, which its formula may miss; -1: none
  V end;
  std::byte* out;
  DType dtype;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    V value = end;
    if (i != last) {
      if constexpr (std::is_integral_v<V>)
        value = start + i * step;
      else
        value = std::fma(static_cast<V>(i), step, start);  // rounded alike on all machines
    }
    store_as<V>(out, i, dtype, value);
  }
};

/// Calls the functor for 0 ... n-1 over the grid of the device.
template <class V>
void ramp_on_grid(const char* op, Device device, int64_t n, const RampElement<V>& functor);

}  // namespace pleat
