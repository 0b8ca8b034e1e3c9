// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pleat/core/host_device.h"

/// The functors of select.h and dropout.h: one input is a mask.

namespace pleat::ops {

struct Where {
  static constexpr std::size_t mask = 0;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};

struct MaskedScale {
  static constexpr std::size_t mask = 1;
  double scale;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, uint8_t stays) const {
    const T scaled = a * static_cast<T>(scale);
    return stays != 0 ? scaled : T(0);
  }
};

}  // namespace pleat::ops
