// Host and device.
#include <cmath>
#include <limits>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// Functions of math.h beside those that every library of mathematics has.

namespace pleat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Where x is near a half, 2 x - 1 is exact, and its logarithm near 0 keeps its digits.
struct Logit {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(x < Weak(0.25), log(x / (1 - x)), log1p((x * 2 - 1) / (1 - x)));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / (x * (1 - x));
  }
};

struct NanToNum {
  double nan, posinf, neginf;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return where(
        x == Weak(infinity).as<T>(), Weak(posinf).as<T>(),
        where(x == Weak(-infinity).as<T>(), Weak(neginf).as<T>(), where(x == x, x, Weak(nan).as<T>())));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return where(abs(x) < Weak(infinity), dy, 0);
  }
};

/// The second operand is 1 in place of what does not count.
struct Xlogy {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x, const T& y) const {
    return x * log(counted(x, y));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& d, const T& x, const T& y) const {
    return d * log(where(x == 0, where(y > 0, y, where(y == y, 1, y)), y));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& d, const T& x, const T& y) const {
    return d * (x / counted(x, y));
  }

 private:
  template <class T>
  PLEAT_HOST_DEVICE static T counted(const T& x, const T& y) {
    return where(x == 0, where(y == y, 1, y), y);
  }
};

double largest(DType dtype) {
  switch (dtype) {
    case float16:
      return 65504;
    case bfloat16:
      return 0x1.FEp127;
    case float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

Tensor logit(const Tensor& input, LogitOptions options) {
  const Tensor x = autocast_to_float32(input);
  if (!options.eps) return pointwise("logit", x, Logit{});
  const double eps = *options.eps;
  check<ValueError>(eps >= 0 && eps <= 0.5, "logit: eps must be in [0, 0.5], got {}", eps);
  return pointwise("logit", clamp(x, {.min = eps, .max = 1 - eps}), Logit{});
}

Tensor nan_to_num(const Tensor& x, NanToNumOptions options) {
  if (!is_floating(x.dtype())) return clone(x);
  const double most = largest(x.dtype());
  return pointwise("nan_to_num", x,
                   NanToNum{options.nan, options.posinf.value_or(most), options.neginf.value_or(-most)});
}

Tensor xlogy(const Tensor& x, const Tensor& y) {
  return pointwise("xlogy", x, y, Xlogy{}, Autocasts::to_float32);
}

}  // namespace pleat
