// Host and device.
#include "pleat/ops/elementwise/math.h"

#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/math_functors.h"

namespace pleat::ops {
namespace {

/// Integers have nothing to round.
template <class F>
Tensor rounded(const char* op, const Tensor& x, const F& f) {
  check<DTypeError>(x.dtype() != boolean, "{}: needs numbers, got bool", op);
  return is_floating(x.dtype()) ? unary_floating(op, x, f) : copy(x);
}

}  // namespace

Tensor exp(const Tensor& x) { return unary_floating("exp", x, Exp{}); }
Tensor expm1(const Tensor& x) { return unary_floating("expm1", x, Expm1{}); }
Tensor log(const Tensor& x) { return unary_floating("log", x, Log{}); }
Tensor log1p(const Tensor& x) { return unary_floating("log1p", x, Log1p{}); }
Tensor log2(const Tensor& x) { return unary_floating("log2", x, Log2{}); }
Tensor log10(const Tensor& x) { return unary_floating("log10", x, Log10{}); }
Tensor sqrt(const Tensor& x) { return unary_floating("sqrt", x, Sqrt{}); }
Tensor rsqrt(const Tensor& x) { return unary_floating("rsqrt", x, Rsqrt{}); }
Tensor reciprocal(const Tensor& x) { return unary_floating("reciprocal", x, Reciprocal{}); }
Tensor sin(const Tensor& x) { return unary_floating("sin", x, Sin{}); }
Tensor cos(const Tensor& x) { return unary_floating("cos", x, Cos{}); }
Tensor tan(const Tensor& x) { return unary_floating("tan", x, Tan{}); }
Tensor asin(const Tensor& x) { return unary_floating("asin", x, Asin{}); }
Tensor acos(const Tensor& x) { return unary_floating("acos", x, Acos{}); }
Tensor atan(const Tensor& x) { return unary_floating("atan", x, Atan{}); }
Tensor sinh(const Tensor& x) { return unary_floating("sinh", x, Sinh{}); }
Tensor cosh(const Tensor& x) { return unary_floating("cosh", x, Cosh{}); }
Tensor tanh(const Tensor& x) { return unary_floating("tanh", x, Tanh{}); }
Tensor erf(const Tensor& x) { return unary_floating("erf", x, Erf{}); }
Tensor atan2(const Tensor& y, const Tensor& x) { return binary_floating("atan2", y, x, Atan2{}); }
Tensor tanh_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("tanh_backward", dy, y, TanhBackward{});
}

Tensor abs(const Tensor& x) { return unary_number("abs", x, Abs{}); }
Tensor sign(const Tensor& x) { return unary_number("sign", x, Sign{}); }
Tensor square(const Tensor& x) { return unary_number("square", x, Square{}); }
Tensor floor(const Tensor& x) { return rounded("floor", x, Floor{}); }
Tensor ceil(const Tensor& x) { return rounded("ceil", x, Ceil{}); }
Tensor round(const Tensor& x) { return rounded("round", x, Round{}); }
Tensor trunc(const Tensor& x) { return rounded("trunc", x, Trunc{}); }

}  // namespace pleat::ops
