// Private header: not installed.
#pragma once

#include <cmath>
#include <limits>

#include "pleat/core/host_device.h"

/// The functors of compare.h.

namespace pleat::ops {

struct Equal {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};

struct Unequal {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a != b;
  }
};

struct Less {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};

struct AtMost {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct IsNan {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return a != a;
  }
};

struct IsInfinite {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return std::abs(a) == std::numeric_limits<T>::infinity();
  }
};

struct IsFinite {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return std::abs(a) < std::numeric_limits<T>::infinity();
  }
};

/// 1 where both are equal or both NaN, else 0.
struct SameElement {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return T((a == b) | ((a != a) & (b != b)));
  }
};

struct Close {
  double rtol, atol;
  bool equal_nan;

  PLEAT_HOST_DEVICE bool operator()(double a, double b) const {
    const double size = std::abs(b);
    const bool near = std::abs(a - b) <= atol + rtol * size && size < std::numeric_limits<double>::infinity();
    return a == b || near || (equal_nan && a != a && b != b);
  }
};

}  // namespace pleat::ops
