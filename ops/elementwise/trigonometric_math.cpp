// Host and device.
#include <concepts>

#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// Trigonometric functions of math.h and their inverses.

namespace pleat {
namespace {

struct Sin {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sin(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * cos(x);
  }
};

struct Cos {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return cos(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return -(dy * sin(x));
  }
};

struct Tan {
  template <std::floating_point T>
  PLEAT_HOST_DEVICE static bool is_near(T x) {
    return sin_is_near(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return tan(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (square(y) + 1);
  }
};

struct Asin {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return asin(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * rsqrt(one_minus_square(x));
  }
};

struct Acos {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return acos(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return -(dy * rsqrt(one_minus_square(x)));
  }
};

struct Atan {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return atan(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T w = folded(x);
    return dy * where(abs(x) > 1, square(w), 1) / (square(w) + 1);
  }
};

}  // namespace

Tensor sin(const Tensor& x) { return pointwise("sin", x, Sin{}); }
Tensor cos(const Tensor& x) { return pointwise("cos", x, Cos{}); }
Tensor tan(const Tensor& x) { return pointwise("tan", x, Tan{}, Autocasts::to_float32); }
Tensor asin(const Tensor& x) { return pointwise("asin", x, Asin{}, Autocasts::to_float32); }
Tensor acos(const Tensor& x) { return pointwise("acos", x, Acos{}, Autocasts::to_float32); }
Tensor atan(const Tensor& x) { return pointwise("atan", x, Atan{}); }

}  // namespace pleat
