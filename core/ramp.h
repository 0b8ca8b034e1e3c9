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
    store_as<V>(out, i, dtype, i == last ? end : at(start, step, i));
  }

  PLEAT_HOST_DEVICE static V at(V start, V step, int64_t i) {
    if constexpr (std::is_integral_v<V>)  // without sign: steps from the least to the largest number exceed
                                          // it
      return static_cast<V>(static_cast<uint64_t>(start) +
                            static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    else
      return std::fma(static_cast<V>(i), step, start);  // rounded alike on all machines
  }
};

/// Calls the functor for 0 ... n-1 over the grid of the device.
template <class V>
void ramp_on_grid(const char* op, Device device, int64_t n, const RampElement<V>& functor);

}  // namespace pleat
