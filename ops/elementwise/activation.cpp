#include "pleat/ops/elementwise/activation.h"

#include <cmath>
#include <numbers>

#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/vector_math.h"

namespace pleat::ops {
namespace {

constexpr auto rectified = []<class T>(T a) { return a < T(0) ? T(0) : a; };

/// The standard normal distribution and its density.
template <class T>
[[gnu::always_inline]] inline T normal_cdf(T x) {
  return T(0.5) * (1 + vmath::erf(x * T(std::numbers::sqrt2 / 2)));
}
template <class T>
[[gnu::always_inline]] inline T normal_pdf(T x) {
  return vmath::exp(T(-0.5) * x * x) * T(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
}

/// sqrt(2 / pi) and the cubic term of gelu's tanh formula.
constexpr double gelu_scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
constexpr double gelu_cubic = 0.044715;

template <class T>
[[gnu::always_inline]] inline T gelu_tanh(T x) {
  return vmath::tanh(T(gelu_scale) * (x + T(gelu_cubic) * x * x * x));
}

/// tanh(softplus(x)) = n / (n + 2) with n = e (e + 2), e = exp(x). It rounds to 1 far below 20.
template <class T>
struct MishParts {
  T e, n;
  [[gnu::always_inline]] explicit MishParts(T x) : e(vmath::exp(x > T(20) ? T(20) : x)), n(e * (e + 2)) {}
};

void check_softplus(const SoftplusOptions& options) {
  check<ValueError>(options.beta > 0, "softplus: beta must be above 0, got {}", options.beta);
}

}  // namespace

Tensor relu(const Tensor& x) { return unary_number("relu", x, rectified); }
void relu_into(const Tensor& out, const Tensor& x) { unary_number_into("relu", out, x, rectified); }
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("relu", dy, y, []<class T>(T g, T r) { return r > T(0) ? g : T(0); });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return unary_floating("leaky_relu", x,
                        [=]<class T>(T a) { return a > T(0) ? a : static_cast<T>(negative_slope) * a; });
}
Tensor leaky_relu_backward(const Tensor& dy, const Tensor& x, double negative_slope) {
  return binary_floating("leaky_relu", dy, x, [=]<class T>(T g, T a) {
    return a > T(0) ? g : static_cast<T>(negative_slope) * g;
  });
}

Tensor elu(const Tensor& x, double alpha) {
  return unary_floating("elu", x, [=]<class T>(T a) {
    const T below = static_cast<T>(alpha) * vmath::expm1(a);
    return a > T(0) ? a : below;
  });
}
Tensor elu_backward(const Tensor& dy, const Tensor& x, double alpha) {
  return binary_floating("elu", dy, x, [=]<class T>(T g, T a) {
    const T below = g * static_cast<T>(alpha) * vmath::exp(a);
    return a > T(0) ? g : below;
  });
}

Tensor sigmoid(const Tensor& x) {
  return unary_floating("sigmoid", x, [](auto a) { return vmath::sigmoid(a); });
}
Tensor sigmoid_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("sigmoid", dy, y, [](auto g, auto s) { return g * s * (1 - s); });
}

Tensor log_sigmoid(const Tensor& x) {
  return unary_floating("log_sigmoid", x, [](auto a) { return -vmath::softplus(-a); });
}
Tensor log_sigmoid_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("log_sigmoid", dy, x, [](auto g, auto a) { return g * vmath::sigmoid(-a); });
}

Tensor softplus(const Tensor& x, SoftplusOptions options) {
  check_softplus(options);
  return unary_floating("softplus", x, [=]<class T>(T a) {
    const T scaled = static_cast<T>(options.beta) * a;
    const T smooth = vmath::softplus(scaled) / static_cast<T>(options.beta);
    return scaled > static_cast<T>(options.threshold) ? a : smooth;
  });
}
Tensor softplus_backward(const Tensor& dy, const Tensor& x, SoftplusOptions options) {
  check_softplus(options);
  return binary_floating("softplus", dy, x, [=]<class T>(T g, T a) {
    const T scaled = static_cast<T>(options.beta) * a;
    const T smooth = g * vmath::sigmoid(scaled);
    return scaled > static_cast<T>(options.threshold) ? g : smooth;
  });
}

Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh)
    return unary_floating("gelu", x, []<class T>(T a) { return T(0.5) * a * (1 + gelu_tanh(a)); });
  return unary_floating("gelu", x, [](auto a) { return a * normal_cdf(a); });
}
Tensor gelu_backward(const Tensor& dy, const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh)
    return binary_floating("gelu", dy, x, []<class T>(T g, T a) {
      const T t = gelu_tanh(a);
      const T inner = T(gelu_scale) * (1 + T(3 * gelu_cubic) * a * a);
      return g * (T(0.5) * (1 + t) + T(0.5) * a * (1 - t * t) * inner);
    });
  return binary_floating("gelu", dy, x,
                         [](auto g, auto a) { return g * (normal_cdf(a) + a * normal_pdf(a)); });
}

Tensor silu(const Tensor& x) {
  return unary_floating("silu", x, [](auto a) { return a * vmath::sigmoid(a); });
}
Tensor silu_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("silu", dy, x, [](auto g, auto a) {
    const auto s = vmath::sigmoid(a);
    return g * s * (1 + a * (1 - s));
  });
}

Tensor mish(const Tensor& x) {
  return unary_floating("mish", x, []<class T>(T a) {
    const MishParts<T> parts(a);
    return a * (parts.n / (parts.n + 2));
  });
}
Tensor mish_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("mish", dy, x, []<class T>(T g, T a) {
    const auto [e, n] = MishParts<T>(a);
    // 1 - tanh^2 = 4 (n + 1) / (n + 2)^2, and n + 1 = (e + 1)^2 cancels against sigmoid(x) = e / (e + 1).
    const T slope = 4 * e * (e + 1) / ((n + 2) * (n + 2));
    return g * (n / (n + 2) + a * slope);
  });
}

Tensor hardswish(const Tensor& x) {
  return unary_floating("hardswish", x, []<class T>(T a) {
    const T raised = a + 3 < T(0) ? T(0) : a + 3;
    return a * (raised > T(6) ? T(6) : raised) * T(1.0 / 6);
  });
}
Tensor hardswish_backward(const Tensor& dy, const Tensor& x) {
  return binary_floating("hardswish", dy, x, []<class T>(T g, T a) {
    const T inside = g * (a * T(1.0 / 3) + T(0.5));
    const T upper = a >= T(3) ? g : inside;
    return a <= T(-3) ? T(0) : upper;
  });
}

}  // namespace pleat::ops
