// Host and device.
#include "pleat/ops/elementwise/activation.h"

#include <array>
#include <cmath>
#include <numbers>

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/elementwise/pointwise_linear.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/spatial/channels_hint.h"

namespace pleat {
namespace {

struct Relu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return where(y <= 0, 0, dy);
  }
};

struct LeakyRelu {
  Weak slope;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x > 0, x, slope * x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x > 0, dy, slope * dy);
  }
};

struct Prelu : ops::MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& weight) const {
    return where(x > 0, x, weight * x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& x, const T& weight) const {
    return where(x > 0, dy, weight * dy);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& x, const T&) const {
    return where(x > 0, 0, x * dy);
  }
};

struct Elu {
  Weak alpha;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x > 0, x, alpha * expm1(x));
  }
  /// Bounded, so that where x is large its exponential does not become inf * 0 in second derivatives.
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x > 0, dy, dy * alpha * exp(at_most(x, 0)));
  }
};

/// Self-normalizing: with these a layer keeps mean 0 and variance 1 (theorem 1 and appendix A4 of the paper).
struct Selu {
  static constexpr double alpha = 1.6732632423543772848;
  static constexpr double scale = 1.0507009873554804934;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x > 0, Weak(scale) * x, Weak(scale * alpha) * expm1(x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * where(x > 0, Weak(scale).as<T>(), Weak(scale * alpha) * exp(at_most(x, 0)));
  }
};

struct Celu {
  Weak alpha;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x > 0, x, alpha * expm1(x / alpha));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(x > 0, dy, dy * exp(at_most(x, 0) / alpha));
  }
};

struct Softsign {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x / (1 + abs(x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T s = 1 + abs(x);
    return dy / s / s;
  }
};

struct Tanhshrink {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x - tanh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * square(tanh(x));
  }
};

struct Glu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& a, const T& gate) const {
    return a * sigmoid(gate);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T&, const T& gate) const {
    return dy * sigmoid(gate);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& a, const T& gate) const {
    const T s = sigmoid(gate);
    return dy * a * s * (1 - s);
  }
};

struct Sigmoid : ops::CoarseInBFloat16 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sigmoid(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * y * (1 - y);
  }
};

struct LogSigmoid {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return -softplus(-x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * sigmoid(-x);
  }
};

struct Softplus {
  Weak beta, threshold;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    const T scaled = beta * x;
    return where(scaled > threshold, x, softplus(scaled) / beta);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T scaled = beta * x;
    return where(scaled > threshold, dy, dy * sigmoid(scaled));
  }
};

/// The standard normal distribution and its density, for numbers and for tensors.
using ops::vmath::normal_cdf;
using ops::vmath::normal_pdf;
Tensor normal_cdf(const Tensor& x) { return erfc(x * (-std::numbers::sqrt2 / 2)) * 0.5; }
Tensor normal_pdf(const Tensor& x) {
  return exp(square(within(x, Weak(40))) * -0.5) * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
}

struct Gelu : ops::CoarseInBFloat16 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x * normal_cdf(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * (normal_cdf(x) + x * normal_pdf(x));
  }
};

/// x (1 + t) / 2 with t = tanh(scale (x + cubic x^3)), scale = sqrt(2 / pi); (1 + t) / 2 is a sigmoid, which
/// keeps its digits where it is small.
struct GeluTanh : ops::CoarseInBFloat16 {
  static constexpr double scale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
  static constexpr double cubic = 0.044715;

  /// 1 - s of s = sigmoid(z); of tensors with the digits that derivatives need where s is near 1.
  template <class T>
  PLEAT_HOST_DEVICE static T rest(const T& s, const T& z) {
    if constexpr (std::same_as<T, Tensor>)
      return sigmoid(-z);
    else
      return 1 - s;
  }
  template <class T>
  PLEAT_HOST_DEVICE static T bent(const T& x) {
    return (x + Weak(cubic) * x * x * x) * Weak(2 * scale);
  }
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x * sigmoid(bent(x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    // Beyond, s is 1 or 0 in any type, and the powers of x overflow.
    const T b = within(x, Weak(30));
    const T z = bent(b);
    const T s = sigmoid(z);
    const T inner = (1 + Weak(3 * cubic) * b * b) * Weak(2 * scale);
    return dy * (s + b * s * rest(s, z) * inner);
  }
};

struct Silu : ops::CoarseInBFloat16 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return x * sigmoid(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T s = sigmoid(x);
    return dy * s * (1 + x * (1 - s));
  }
};

/// tanh(softplus(x)) = n / (n + 2) with n = e (e + 2), e = exp(x). It rounds to 1 far below 20.
struct Mish {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    const T e = exp(at_most(x, 20));
    const T n = e * (e + 2);
    return x * (n / (n + 2));
  }
  /// 1 - tanh^2 = 4 (n + 1) / (n + 2)^2, and n + 1 = (e + 1)^2 cancels against sigmoid(x) = e / (e + 1).
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T bounded = at_most(x, 20);
    const T e = exp(bounded);
    const T n = e * (e + 2);
    return dy * (n / (n + 2) + bounded * (4 * e * (e + 1) / square(n + 2)));
  }
};

void check_finite(const char* op, const char* what, double value) {
  check<ValueError>(std::isfinite(value), "{}: {} must be finite, got {}", op, what, value);
}

}  // namespace

Tensor relu(const Tensor& x) { return pointwise_number("relu", x, Relu{}); }

const Tensor& relu_(const Tensor& x) {
  const Call call("relu", {x});
  if (changes_tape(x))
    replace_in_place("relu_", x, relu);
  else
    ops::map_into<ops::Numbers>("relu", x.dtype(), x, std::array{x}, Relu{});
  return call.gives(x);
}

Tensor leaky_relu(const Tensor& x, Real negative_slope) {
  check_finite("leaky_relu", "negative_slope", negative_slope);
  return pointwise("leaky_relu", x, LeakyRelu{Weak(negative_slope)},
                   {{"negative_slope", double{negative_slope}}});
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const int64_t count = weight.numel();
  if (weight.rank() > 1 || (count != 1 && (x.rank() < 2 || count != x.size(1))))
    fail<ShapeError>(
        "prelu: weight must have one element, or one for each channel of [N, C, ...], got {} beside x {}{}",
        weight.shape(), x.shape(), ops::channels_last_hint(x.shape(), count));
  Shape shape(count == 1 ? 0 : static_cast<std::size_t>(x.rank() - 1), 1);
  if (!shape.empty()) shape[0] = count;
  return pointwise("prelu", x, reshape(weight, shape), Prelu{}, Autocasts::to_half);
}

Tensor elu(const Tensor& x, Real alpha) {
  check_finite("elu", "alpha", alpha);
  return pointwise("elu", x, Elu{Weak(alpha)}, {{"alpha", double{alpha}}});
}

Tensor selu(const Tensor& x) { return pointwise("selu", x, Selu{}); }

Tensor celu(const Tensor& x, Real alpha) {
  check<ValueError>(std::isfinite(alpha) && alpha != 0, "celu: alpha must be finite and not 0, got {}",
                    alpha);
  return pointwise("celu", x, Celu{Weak(alpha)}, {{"alpha", double{alpha}}});
}

Tensor softsign(const Tensor& x) { return pointwise("softsign", x, Softsign{}); }
Tensor tanhshrink(const Tensor& x) { return pointwise("tanhshrink", x, Tanhshrink{}); }

Tensor glu(const Tensor& x, Integer dim) {
  const int64_t along = normalize_dim(dim, x.rank(), "glu");
  const int64_t size = x.rank() == 0 ? 1 : x.size(along);
  check<ShapeError>(size % 2 == 0, "glu: the size of dimension {} must be even, got {}", int64_t{dim}, x);
  const auto half = [dim, size](const Tensor& whole, int64_t which) {
    return narrow(whole, dim, which * (size / 2), size / 2);
  };
  const Call call("glu", {x}, {{"dim", dim}});
  const Tensor y = no_grad([&] { return ops::binary_floating("glu", half(x, 0), half(x, 1), Glu{}); });
  return call.result(
      y, grad_of(x, [x = saved(x), dim, half](const Tensor& dy) {
        const Tensor a = half(*x, 0), gate = half(*x, 1);
        if (grad_enabled())
          return cat({detail::run_backward("glu", detail::BackwardFirst<Glu>{}, dy, a, gate),
                      detail::run_backward("glu", detail::BackwardSecond<Glu>{}, dy, a, gate)},
                     dim);
        // Into the halves of one tensor, which need not be joined.
        const std::array from{dy, a, gate};
        const Tensor dx = empty_like(*x);
        ops::map_into<ops::Floating>("glu", dx.dtype(), half(dx, 0), from, detail::BackwardFirst<Glu>{});
        ops::map_into<ops::Floating>("glu", dx.dtype(), half(dx, 1), from, detail::BackwardSecond<Glu>{});
        return dx;
      }));
}

Tensor sigmoid(const Tensor& x) { return pointwise("sigmoid", x, Sigmoid{}); }
Tensor log_sigmoid(const Tensor& x) { return pointwise("log_sigmoid", x, LogSigmoid{}); }

Tensor softplus(const Tensor& x, SoftplusOptions options) {
  check<ValueError>(options.beta > 0 && std::isfinite(options.beta),
                    "softplus: beta must be above 0 and finite, got {}", options.beta);
  check<ValueError>(!std::isnan(options.threshold), "softplus: threshold must be a number, got {}",
                    options.threshold);
  return pointwise("softplus", x, Softplus{Weak(options.beta), Weak(options.threshold)},
                   Autocasts::to_float32, {{"beta", options.beta}, {"threshold", options.threshold}});
}

Tensor gelu(const Tensor& x, GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh)
    return pointwise("gelu", x, GeluTanh{}, {{"tanh", Flag(true)}});
  return pointwise("gelu", x, Gelu{}, {{"tanh", Flag(false)}});
}

Tensor silu(const Tensor& x) { return pointwise("silu", x, Silu{}); }
Tensor mish(const Tensor& x) { return pointwise("mish", x, Mish{}); }
LinearActivationPtr linear_sigmoid() { return pointwise_linear("sigmoid", Sigmoid{}); }
LinearActivationPtr linear_silu() { return pointwise_linear("silu", Silu{}); }
LinearActivationPtr linear_mish() { return pointwise_linear("mish", Mish{}); }
LinearActivationPtr linear_leaky_relu(double negative_slope) {
  return pointwise_linear("leaky_relu", LeakyRelu{Weak(negative_slope)});
}
LinearActivationPtr linear_elu(double alpha) { return pointwise_linear("elu", Elu{Weak(alpha)}); }
LinearActivationPtr linear_gelu(GeluApproximation approximation) {
  if (approximation == GeluApproximation::tanh) return pointwise_linear("gelu", GeluTanh{});
  return pointwise_linear("gelu", Gelu{});
}

}  // namespace pleat
