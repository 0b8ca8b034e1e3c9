// Host and device.
#include "pleat/ops/elementwise/math.h"

#include <cmath>
#include <numbers>
#include <type_traits>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/pointwise.h"

namespace pleat {
namespace {

struct Exp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return exp(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * y;
  }
};

struct Exp2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return exp2(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * y * Weak(std::numbers::ln2);
  }
};

struct Expm1 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return expm1(x);
  }
  /// y + 1 would have no digits left where y is near -1.
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * exp(x);
  }
};

struct Log {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / x;
  }
};

struct Log1p {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log1p(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (x + 1);
  }
};

struct Log2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log2(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / x * Weak(1 / std::numbers::ln2);
  }
};

struct Log10 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return log10(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / x * Weak(1 / std::numbers::ln10);
  }
};

struct Sqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sqrt(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy / (y * 2);
  }
};

struct Rsqrt {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return rsqrt(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (y * Weak(-0.5) * square(y));
  }
};

struct Reciprocal {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return 1 / x;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return -(dy * square(y));
  }
};

/// Beyond 40 its derivative, exp(-x^2), is 0 in any type, and x^2 would overflow.
struct Erf {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return erf(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * exp(-square(within(x, Weak(40)))) * Weak(2 * std::numbers::inv_sqrtpi);
  }
};

struct Erfc {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return erfc(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * exp(-square(within(x, Weak(40)))) * Weak(-2 * std::numbers::inv_sqrtpi);
  }
};

struct Square {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return static_cast<T>(ops::wrapping(x) * ops::wrapping(x));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * x * 2;
  }
};

struct Abs {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(x);
    else
      return x < T(0) ? static_cast<T>(0 - ops::wrapping(x)) : x;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * sign(x);
  }
};

struct Sign {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sign(x);
  }
};

struct Floor {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::floor(x);
  }
};

struct Ceil {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::ceil(x);
  }
};

struct Round {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::rint(x);
  }
};

struct Trunc {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return std::trunc(x);
  }
};

/// Integers have nothing to round.
template <class F>
Tensor rounded(const char* op, const Tensor& x, const F& formula) {
  check<DTypeError>(x.dtype() != boolean, "{}: needs numbers, got bool", op);
  if (is_floating(x.dtype())) return pointwise(op, x, formula);
  const Call call(op, {x});
  return call.gives(ops::copy(x));
}

}  // namespace

Tensor exp(const Tensor& x) { return pointwise("exp", x, Exp{}, Autocasts::to_float32); }
Tensor exp2(const Tensor& x) { return pointwise("exp2", x, Exp2{}); }
Tensor expm1(const Tensor& x) { return pointwise("expm1", x, Expm1{}, Autocasts::to_float32); }
Tensor log(const Tensor& x) { return pointwise("log", x, Log{}, Autocasts::to_float32); }
Tensor log1p(const Tensor& x) { return pointwise("log1p", x, Log1p{}, Autocasts::to_float32); }
Tensor log2(const Tensor& x) { return pointwise("log2", x, Log2{}, Autocasts::to_float32); }
Tensor log10(const Tensor& x) { return pointwise("log10", x, Log10{}, Autocasts::to_float32); }
Tensor sqrt(const Tensor& x) { return pointwise("sqrt", x, Sqrt{}); }
Tensor rsqrt(const Tensor& x) { return pointwise("rsqrt", x, Rsqrt{}, Autocasts::to_float32); }
Tensor reciprocal(const Tensor& x) { return pointwise("reciprocal", x, Reciprocal{}, Autocasts::to_float32); }
Tensor erf(const Tensor& x) { return pointwise("erf", x, Erf{}); }
Tensor erfc(const Tensor& x) { return pointwise("erfc", x, Erfc{}); }

Tensor square(const Tensor& x) { return pointwise_number("square", x, Square{}); }
Tensor abs(const Tensor& x) { return pointwise_number("abs", x, Abs{}); }
Tensor sign(const Tensor& x) { return pointwise_number("sign", x, Sign{}); }
Tensor floor(const Tensor& x) { return rounded("floor", x, Floor{}); }
Tensor ceil(const Tensor& x) { return rounded("ceil", x, Ceil{}); }
Tensor round(const Tensor& x) { return rounded("round", x, Round{}); }
Tensor trunc(const Tensor& x) { return rounded("trunc", x, Trunc{}); }

}  // namespace pleat
