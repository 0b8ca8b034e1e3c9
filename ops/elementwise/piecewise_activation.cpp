// Host and device.
#include <cmath>

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/elementwise/pointwise_linear.h"

/// Activation functions that are straight, piece by piece.

namespace pleat {
namespace {

struct Hardswish {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x * at_most(where(x < -3, 0, x + 3), 6) * Weak(1.0 / 6);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x <= -3, 0, where(x >= 3, dy, dy * (x * Weak(1.0 / 3) + Weak(0.5))));
  }
};

struct Hardsigmoid {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return at_most(where(x < -3, 0, x + 3), 6) * Weak(1.0 / 6);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x > -3, where(x < 3, dy * Weak(1.0 / 6), 0), 0);
  }
};

/// The values are those of clamp.
struct Hardtanh {
  Weak min, max;

  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x > min, where(x < max, dy, 0), 0);
  }
};

/// Within bounds, of which NaN is none; the gradient from the result.
struct Limited {
  Weak min, max;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    const auto low = min.as<T>(), high = max.as<T>();
    return where(x < low, low, where(x > high, high, x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return where(y <= min.as<T>(), 0, where(y >= max.as<T>(), 0, dy));
  }
};

/// NaN is within no bounds, so it stays, and passes the gradient on.
struct Softshrink {
  Weak lambd;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    const auto l = lambd.as<T>();
    return where(abs(x) <= l, 0, where(x > 0, x - l, x + l));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(abs(x) <= lambd.as<T>(), 0, dy);
  }
};

/// As Softshrink, but what stays keeps its size.
struct Hardshrink {
  Weak lambd;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(abs(x) <= lambd.as<T>(), 0, x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(abs(x) <= lambd.as<T>(), 0, dy);
  }
};

/// A NaN is not below the bound, so it stays.
struct Threshold {
  Weak bound, value;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x <= bound.as<T>(), value.as<T>(), x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x <= bound.as<T>(), 0, dy);
  }
};

}  // namespace

Tensor hardswish(const Tensor& x) { return pointwise("hardswish", x, Hardswish{}); }
Tensor hardsigmoid(const Tensor& x) { return pointwise("hardsigmoid", x, Hardsigmoid{}); }

Tensor hardtanh(const Tensor& x, Real min, Real max) {
  check<ValueError>(min <= max, "hardtanh: needs min <= max, got {} and {}", min, max);
  const Call call("hardtanh", {x}, {{"min", double{min}}, {"max", double{max}}});
  const Tensor y = no_grad([&] { return clamp(x, double{min}, double{max}); });
  return call.result(y, derivative_of("hardtanh", y, x, Hardtanh{Weak(min), Weak(max)}));
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0, 6); }

Tensor softshrink(const Tensor& x, Real lambd) {
  check<ValueError>(lambd >= 0, "softshrink: lambd must be at least 0, got {}", lambd);
  return pointwise("softshrink", x, Softshrink{Weak(lambd)}, {{"lambd", double{lambd}}});
}

Tensor hardshrink(const Tensor& x, Real lambd) {
  check<ValueError>(lambd >= 0, "hardshrink: lambd must be at least 0, got {}", lambd);
  return pointwise("hardshrink", x, Hardshrink{Weak(lambd)}, {{"lambd", double{lambd}}});
}

Tensor threshold(const Tensor& x, Real bound, Real value) {
  check<ValueError>(!std::isnan(bound), "threshold: the threshold must be a number, got {}", bound);
  return pointwise("threshold", x, Threshold{Weak(bound), Weak(value)},
                   {{"threshold", double{bound}}, {"value", double{value}}});
}

LinearActivationPtr linear_hardswish() { return pointwise_linear("hardswish", Hardswish{}); }
LinearActivationPtr linear_hardsigmoid() { return pointwise_linear("hardsigmoid", Hardsigmoid{}); }
LinearActivationPtr linear_limit(const Bounds& bounds) {
  // Comparisons with NaN are false: no bound.
  const auto bound = [](double value, double none) { return Weak(value == none ? std::nan("") : value); };
  return pointwise_linear("limit", Limited{bound(bounds.min, Bounds().min), bound(bounds.max, Bounds().max)});
}

}  // namespace pleat
