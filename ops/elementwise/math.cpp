#include "pleat/ops/elementwise/math.h"

#include <cmath>

#include "pleat/core/copy.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/vector_math.h"

namespace pleat::ops {
namespace {

/// Integers have nothing to round.
template <class F>
Tensor rounded(const char* op, const Tensor& x, const F& f) {
  check<DTypeError>(x.dtype() != boolean, "{}: needs numbers, got bool", op);
  return is_floating(x.dtype()) ? unary_floating(op, x, f) : copy(x);
}

}  // namespace

Tensor exp(const Tensor& x) {
  return unary_floating("exp", x, [](auto a) { return vmath::exp(a); });
}
Tensor expm1(const Tensor& x) {
  return unary_floating("expm1", x, [](auto a) { return vmath::expm1(a); });
}
Tensor log(const Tensor& x) {
  return unary_floating("log", x, [](auto a) { return vmath::log(a); });
}
Tensor log1p(const Tensor& x) {
  return unary_floating("log1p", x, [](auto a) { return vmath::log1p(a); });
}
Tensor log2(const Tensor& x) {
  return unary_floating("log2", x, [](auto a) { return std::log2(a); });
}
Tensor log10(const Tensor& x) {
  return unary_floating("log10", x, [](auto a) { return std::log10(a); });
}
Tensor sqrt(const Tensor& x) {
  return unary_floating("sqrt", x, [](auto a) { return std::sqrt(a); });
}
Tensor rsqrt(const Tensor& x) {
  return unary_floating("rsqrt", x, [](auto a) { return 1 / std::sqrt(a); });
}
Tensor reciprocal(const Tensor& x) {
  return unary_floating("reciprocal", x, [](auto a) { return 1 / a; });
}
Tensor sin(const Tensor& x) {
  return unary_floating("sin", x, [](auto a) { return std::sin(a); });
}
Tensor cos(const Tensor& x) {
  return unary_floating("cos", x, [](auto a) { return std::cos(a); });
}
Tensor tan(const Tensor& x) {
  return unary_floating("tan", x, [](auto a) { return std::tan(a); });
}
Tensor asin(const Tensor& x) {
  return unary_floating("asin", x, [](auto a) { return std::asin(a); });
}
Tensor acos(const Tensor& x) {
  return unary_floating("acos", x, [](auto a) { return std::acos(a); });
}
Tensor atan(const Tensor& x) {
  return unary_floating("atan", x, [](auto a) { return std::atan(a); });
}
Tensor atan2(const Tensor& y, const Tensor& x) {
  return binary_floating("atan2", y, x, [](auto a, auto b) { return std::atan2(a, b); });
}
Tensor sinh(const Tensor& x) {
  return unary_floating("sinh", x, [](auto a) { return std::sinh(a); });
}
Tensor cosh(const Tensor& x) {
  return unary_floating("cosh", x, [](auto a) { return std::cosh(a); });
}
Tensor tanh(const Tensor& x) {
  return unary_floating("tanh", x, [](auto a) { return vmath::tanh(a); });
}
Tensor tanh_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("tanh", dy, y, [](auto g, auto t) { return g * (1 - t * t); });
}
Tensor erf(const Tensor& x) {
  return unary_floating("erf", x, [](auto a) { return vmath::erf(a); });
}

Tensor abs(const Tensor& x) {
  return unary_number("abs", x, []<class T>(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(a);
    else
      return a < T(0) ? static_cast<T>(0 - wrapping(a)) : a;
  });
}
Tensor sign(const Tensor& x) {
  return unary_number("sign", x, []<class T>(T a) {
    return a > T(0) ? T(1) : a < T(0) ? static_cast<T>(-1) : a;
  });
}
Tensor square(const Tensor& x) {
  return unary_number("square", x, []<class T>(T a) { return static_cast<T>(wrapping(a) * wrapping(a)); });
}
Tensor floor(const Tensor& x) {
  return rounded("floor", x, [](auto a) { return std::floor(a); });
}
Tensor ceil(const Tensor& x) {
  return rounded("ceil", x, [](auto a) { return std::ceil(a); });
}
Tensor round(const Tensor& x) {
  return rounded("round", x, [](auto a) { return std::rint(a); });
}
Tensor trunc(const Tensor& x) {
  return rounded("trunc", x, [](auto a) { return std::trunc(a); });
}

}  // namespace pleat::ops
