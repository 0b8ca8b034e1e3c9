// Private header: not installed.
#pragma once

#include <limits>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/spatial/bounds.h"

namespace pleat::ops {

/// Bounds as kernels take them. T is float or double.
template <class T>
struct Limit {
  T min, max;  ///< NaN where there is none: every comparison with it is false

  Limit(const Bounds& bounds = {})
      : min(bounds.min == Bounds().min ? none() : static_cast<T>(bounds.min)),
        max(bounds.max == Bounds().max ? none() : static_cast<T>(bounds.max)) {}

  PLEAT_HOST_DEVICE T limited(T value) const {
    value = value < min ? min : value;
    return value > max ? max : value;
  }
  /// Whether `value`, limited or not, is one that passes no gradient.
  PLEAT_HOST_DEVICE bool is_closed(T value) const { return value <= min || value >= max; }
  /// `gradient` where it passes, else 0.
  PLEAT_HOST_DEVICE T open(T value, T gradient) const {
    gradient = value <= min ? T(0) : gradient;
    return value >= max ? T(0) : gradient;
  }

 private:
  static T none() { return std::numeric_limits<T>::quiet_NaN(); }
};

}  // namespace pleat::ops
