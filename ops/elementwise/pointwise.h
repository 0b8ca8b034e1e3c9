// Private header: not installed.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/elementwise/vector_math.h"
#include "pleat/ops/elementwise/vector_power.h"
#include "pleat/ops/elementwise/vector_trigonometry.h"
#include "pleat/ops/elementwise/widened.h"

/// Pointwise functions of one tensor or two. Each is a formula: what becomes of an element, and what becomes
/// of a gradient, written once for any T:
///
///   /// x / (1 + |x|).
///   struct Softsign {
///     template <class T>
///     PLEAT_HOST_DEVICE T operator()(const T& x) const {
///       return x / (1 + abs(x));
///     }
///     template <class T>
///     PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
///       const T s = 1 + abs(x);
///       return dy / s / s;  // the square would overflow
///     }
///   };
///
///   Tensor softsign(const Tensor& x) { return pointwise("softsign", x, Softsign{}); }
///
/// With T = float or double these are loops and kernels, one pass over memory each. With T = Tensor
/// `backward` is made of differentiable functions of float32 or float64, which is how gradients of gradients
/// are taken. So a formula
/// - calls functions that exist for both (ops/elementwise/vector_math.h has them for numbers);
/// - chooses by `where(x > 0, a, b)`, never by a branch: such loops become vector instructions;
/// - has `is_near(x)` where it calls a function like sin, which holds up to some size of x only;
/// - writes constants that are not whole as Weak(0.5).
/// `backward_from_result(dy, y)` in the place of `backward(dy, x)` starts from y = f(x), which is then kept
/// instead of x. Without either the function is constant piece by piece, and its gradient 0. A formula of two
/// tensors has `backward_first(dy, a, b)` and `backward_second(dy, a, b)`.
///
/// For files whose first line is "Host and device".

namespace pleat {

// For formulas, which stand in namespace pleat: these for numbers, pleat's own for tensors.
using namespace ops::vmath;  // NOLINT

/// A number in a formula, in the type of what it meets.
struct Weak {
  double value;
  PLEAT_HOST_DEVICE constexpr explicit Weak(double number) : value(number) {}

  template <class T>
  PLEAT_HOST_DEVICE auto as() const {
    if constexpr (std::same_as<T, Tensor>)
      return value;
    else
      return static_cast<T>(value);
  }

  template <class T>
  friend PLEAT_HOST_DEVICE T operator+(const T& a, Weak b) {
    return a + b.as<T>();
  }
  template <class T>
  friend PLEAT_HOST_DEVICE T operator*(const T& a, Weak b) {
    return a * b.as<T>();
  }
  template <class T>
  friend PLEAT_HOST_DEVICE T operator*(Weak a, const T& b) {
    return b * a;
  }
  template <class T>
  friend PLEAT_HOST_DEVICE T operator/(const T& a, Weak b) {
    return a / b.as<T>();
  }
  template <class T>
  friend PLEAT_HOST_DEVICE auto operator>(const T& a, Weak b) {
    return a > b.as<T>();
  }
  template <class T>
  friend PLEAT_HOST_DEVICE auto operator<(const T& a, Weak b) {
    return a < b.as<T>();
  }
};

/// 1 - x^2, which keeps its digits where x is near 1, and of which the derivative does where x is near 0.
template <std::floating_point T>
PLEAT_HOST_DEVICE T one_minus_square(T x) {
  return (1 - x) * (1 + x);
}
Tensor one_minus_square(const Tensor& x);

/// x, or 1 / x where that is the smaller one: powers of it do not overflow.
template <class T>
PLEAT_HOST_DEVICE T folded(const T& x) {
  const auto is_large = abs(x) > 1;
  return where(is_large, 1 / where(is_large, x, 1), x);
}

/// The nearest to x that is at most so far from 0.
template <class T>
PLEAT_HOST_DEVICE T within(const T& x, Weak bound) {
  const auto most = bound.as<T>();
  return where(x > most, most, where(x < -most, -most, x));
}

/// The smaller of x and a bound: its gradient passes where x is the one, also at the bound.
inline Tensor at_most(const Tensor& x, double bound) { return clamp(x, {.max = bound}); }

namespace detail {

template <class F>
concept BackwardFromInput = requires(const F& f, float a) {
  f.backward(a, a);
};
template <class F>
concept BackwardFromResult = requires(const F& f, float a) {
  f.backward_from_result(a, a);
};

/// The gradient that a formula gives, as a functor.
template <class F>
struct Backward {
  F formula;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T kept) const {
    if constexpr (BackwardFromResult<F>)
      return formula.backward_from_result(dy, kept);
    else
      return formula.backward(dy, kept);
  }
  template <class T>
  bool is_near(T, T kept) const requires requires {
    formula.is_near(kept);
  }
  { return formula.is_near(kept); }
};
}  // namespace detail
namespace ops {
template <class F>
inline constexpr bool is_coarse<detail::Backward<F>> = is_coarse<F>;
}  // namespace ops
namespace detail {

template <class F>
struct BackwardFirst {
  F formula;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a, T b) const {
    return formula.backward_first(dy, a, b);
  }
};
template <class F>
struct BackwardSecond {
  F formula;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a, T b) const {
    return formula.backward_second(dy, a, b);
  }
};

/// For a gradient made of these, in their promoted floating type.
Tensor gradient_like(std::span<const Tensor> dy_and_kept);

/// backward(dy, kept...) in one pass, or on the tape where a graph of gradients is recorded.
template <class B, std::same_as<Tensor>... Kept>
Tensor run_backward(const char* op, const B& backward, const Tensor& dy, const Kept&... kept) {
  if (grad_enabled()) return backward(widened(dy), widened(kept)...);
  const RecordOp range(op, "_backward", dy, kept...);
  const std::array in{dy, kept...};
  const Tensor dx = gradient_like(in);
  ops::map_into<ops::Floating>(op, dx.dtype(), dx, in, backward);
  return dx;
}

// What is the same for all formulas.
using UnaryBackward = std::function<Tensor(const Tensor& dy, const Tensor& kept)>;
using BinaryBackward = std::function<Tensor(const Tensor& dy, const Tensor& a, const Tensor& b)>;
Derivative unary_derivative(const Tensor& x, const Tensor& kept, UnaryBackward backward);
Derivative zero_derivative(const Tensor& x);
std::vector<Derivative> binary_derivatives(const Tensor& a, const Tensor& b, BinaryBackward first,
                                           BinaryBackward second);

}  // namespace detail

/// The derivative of y = formula(x), computed already.
template <class F>
Derivative derivative_of(const char* op, const Tensor& y, const Tensor& x, const F& formula) {
  constexpr bool keeps_result = detail::BackwardFromResult<F>;
  if constexpr (keeps_result || detail::BackwardFromInput<F>)
    return detail::unary_derivative(x, keeps_result ? y : x,
                                    [op, formula](const Tensor& dy, const Tensor& kept) {
                                      return detail::run_backward(op, detail::Backward<F>{formula}, dy, kept);
                                    });
  else
    return detail::zero_derivative(x);
}

/// Those of formula(a, b).
template <class F>
std::vector<Derivative> derivatives_of(const char* op, const Tensor& a, const Tensor& b, const F& formula) {
  return detail::binary_derivatives(
      a, b,
      [op, formula](const Tensor& dy, const Tensor& kept_a, const Tensor& kept_b) {
        return detail::run_backward(op, detail::BackwardFirst<F>{formula}, dy, kept_a, kept_b);
      },
      [op, formula](const Tensor& dy, const Tensor& kept_a, const Tensor& kept_b) {
        return detail::run_backward(op, detail::BackwardSecond<F>{formula}, dy, kept_a, kept_b);
      });
}

/// The function y = formula(x) in floating arithmetic: integers give float32. Its options, which the formula
/// has, are named for those who watch the call.
template <class F>
Tensor pointwise(const char* op, const Tensor& input, const F& formula, Autocasts casts,
                 std::initializer_list<Attribute> options = {}) {
  const Call call(op, {input}, options, casts);
  const Tensor& x = call.input(0);
  const Tensor y = ops::unary_floating(op, x, formula);
  return call.result(y, derivative_of(op, y, x, formula));
}
template <class F>
Tensor pointwise(const char* op, const Tensor& x, const F& formula,
                 std::initializer_list<Attribute> options = {}) {
  return pointwise(op, x, formula, Autocasts::none, options);
}

/// The function formula(a, b), broadcast, in floating arithmetic.
template <class F>
Tensor pointwise(const char* op, const Tensor& first, const Tensor& second, const F& formula,
                 Autocasts casts = Autocasts::none) {
  const Call call(op, {first, second}, {}, casts);
  const Tensor &a = call.input(0), &b = call.input(1);
  return call.result(ops::binary_floating(op, a, b, formula), derivatives_of(op, a, b, formula));
}

/// The function y = formula(x) in x's own type: integers stay integers.
template <class F>
Tensor pointwise_number(const char* op, const Tensor& x, const F& formula) {
  const Call call(op, {x});
  const Tensor y = ops::unary_number(op, x, formula);
  return call.result(y, derivative_of(op, y, x, formula));
}

}  // namespace pleat
