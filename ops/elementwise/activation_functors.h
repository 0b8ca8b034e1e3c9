// Private header: not installed.
#pragma once

#include <numbers>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/elementwise/vector_math.h"

/// The functors of activation.h.

namespace pleat::ops {

/// The standard normal distribution and its density.
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T normal_cdf(T x) {
  return T(0.5) * (1 + vmath::erf(x * T(std::numbers::sqrt2 / 2)));
}
template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T normal_pdf(T x) {
  return vmath::exp(T(-0.5) * x * x) * T(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
}

/// sqrt(2 / pi) and the cubic term of gelu's tanh formula.
inline constexpr double gelu_scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
inline constexpr double gelu_cubic = 0.044715;

template <class T>
[[gnu::always_inline]] PLEAT_HOST_DEVICE inline T gelu_tanh(T x) {
  return vmath::tanh(T(gelu_scale) * (x + T(gelu_cubic) * x * x * x));
}

/// tanh(softplus(x)) = n / (n + 2) with n = e (e + 2), e = exp(x). It rounds to 1 far below 20.
template <class T>
struct MishParts {
  T e, n;
  [[gnu::always_inline]] PLEAT_HOST_DEVICE explicit MishParts(T x)
      : e(vmath::exp(x > T(20) ? T(20) : x)), n(e * (e + 2)) {}
};

struct Relu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a < T(0) ? T(0) : a;
  }
};

struct ReluBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T y) const {
    return y <= T(0) ? T(0) : dy;  // NaN lets the gradient through
  }
};

struct LeakyRelu {
  double slope;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a > T(0) ? a : static_cast<T>(slope) * a;
  }
};

struct LeakyReluBackward {
  double slope;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    return a > T(0) ? dy : static_cast<T>(slope) * dy;
  }
};

struct Elu {
  double alpha;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const T below = static_cast<T>(alpha) * vmath::expm1(a);
    return a > T(0) ? a : below;
  }
};

struct EluBackward {
  double alpha;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T below = dy * static_cast<T>(alpha) * vmath::exp(a);
    return a > T(0) ? dy : below;
  }
};

struct Sigmoid {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return vmath::sigmoid(a);
  }
};

struct SigmoidBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T y) const {
    return dy * y * (1 - y);
  }
};

struct LogSigmoid {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return -vmath::softplus(-a);
  }
};

struct LogSigmoidBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    return dy * vmath::sigmoid(-a);
  }
};

struct Softplus {
  double beta, threshold;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const T scaled = static_cast<T>(beta) * a;
    const T smooth = vmath::softplus(scaled) / static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? a : smooth;
  }
};

struct SoftplusBackward {
  double beta, threshold;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T scaled = static_cast<T>(beta) * a;
    const T smooth = dy * vmath::sigmoid(scaled);
    return scaled > static_cast<T>(threshold) ? dy : smooth;
  }
};

struct Gelu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a * normal_cdf(a);
  }
};

struct GeluBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    return dy * (normal_cdf(a) + a * normal_pdf(a));
  }
};

struct GeluTanh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return T(0.5) * a * (1 + gelu_tanh(a));
  }
};

struct GeluTanhBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T t = gelu_tanh(a);
    const T inner = T(gelu_scale) * (1 + T(3 * gelu_cubic) * a * a);
    return dy * (T(0.5) * (1 + t) + T(0.5) * a * (1 - t * t) * inner);
  }
};

struct Silu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    return a * vmath::sigmoid(a);
  }
};

struct SiluBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T s = vmath::sigmoid(a);
    return dy * s * (1 + a * (1 - s));
  }
};

struct Mish {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const MishParts<T> parts(a);
    return a * (parts.n / (parts.n + 2));
  }
};

struct MishBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const auto [e, n] = MishParts<T>(a);
    // 1 - tanh^2 = 4 (n + 1) / (n + 2)^2, and n + 1 = (e + 1)^2 cancels against sigmoid(x) = e / (e + 1).
    const T slope = 4 * e * (e + 1) / ((n + 2) * (n + 2));
    return dy * (n / (n + 2) + (a > T(20) ? T(20) : a) * slope);
  }
};

struct Hardswish {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const T raised = a + 3 < T(0) ? T(0) : a + 3;
    return a * (raised > T(6) ? T(6) : raised) * T(1.0 / 6);
  }
};

struct HardswishBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T inside = dy * (a * T(1.0 / 3) + T(0.5));
    const T upper = a >= T(3) ? dy : inside;
    return a <= T(-3) ? T(0) : upper;
  }
};

}  // namespace pleat::ops
