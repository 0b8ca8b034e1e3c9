// Private header: not installed.
#pragma once

#include <cmath>

#include "pleat/core/host_device.h"
#include "pleat/ops/elementwise/vector_math.h"

/// The functors of pointwise_loss.h. Losses of the distance d = x - target, and their derivatives by x times
/// dy.

namespace pleat::ops {

template <class T>
PLEAT_HOST_DEVICE T sign_of(T d) {
  return static_cast<T>(d > 0) - static_cast<T>(d < 0);
}

struct SquaredDistance {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    return d * d;
  }
};

struct SquaredDistanceBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    return dy * (2 * (x - target));
  }
};

struct AbsoluteDistance {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    return std::abs(x - target);
  }
};

struct AbsoluteDistanceBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    return dy * sign_of(x - target);
  }
};

struct SmoothDistance {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return std::abs(d) < w ? d * d / (2 * w) : std::abs(d) - w / 2;
  }
};

struct SmoothDistanceBackward {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return dy * (std::abs(d) >= w ? sign_of(d) : d / w);  // NaN stays
  }
};

struct HuberDistance {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return std::abs(d) < w ? d * d / 2 : w * (std::abs(d) - w / 2);
  }
};

struct HuberDistanceBackward {
  double width;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target) const {
    const T d = x - target;
    const T w = static_cast<T>(width);
    return dy * (std::abs(d) >= w ? w * sign_of(d) : d);
  }
};

struct BinaryCrossEntropy {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x, T target, T positive) const {
    const T softplus = std::log1p(vmath::exp(-std::abs(x))) + (x < 0 ? -x : T(0));  // log(1 + exp(-x))
    return (1 - target) * x + (1 + (positive - 1) * target) * softplus;
  }
};

struct BinaryCrossEntropyBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T x, T target, T positive) const {
    const T sigmoid_of_negative = 1 / (1 + vmath::exp(x));
    return dy * ((1 - target) - (1 + (positive - 1) * target) * sigmoid_of_negative);
  }
};

}  // namespace pleat::ops
