// Host and device.
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"
#include "pleat/ops/elementwise/pointwise_linear.h"

/// Hyperbolic functions of math.h and their inverses.

namespace pleat {
namespace {

struct Sinh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return sinh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * cosh(x);
  }
};

struct Cosh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return cosh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy * sinh(x);
  }
};

struct Tanh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return tanh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_from_result(const T& dy, const T& y) const {
    return dy * (1 - square(y));
  }
};

struct Asinh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return asinh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T w = folded(x);
    return dy * where(abs(x) > 1, abs(w), 1) * rsqrt(square(w) + 1);
  }
};

struct Acosh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return acosh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    const T size = abs(x);
    return dy * rsqrt(size - 1) * rsqrt(size + 1);
  }
};

struct Atanh {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& x) const {
    return atanh(x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward(const T& dy, const T& x) const {
    return dy / one_minus_square(x);
  }
};

}  // namespace

Tensor sinh(const Tensor& x) { return pointwise("sinh", x, Sinh{}, Autocasts::to_float32); }
Tensor cosh(const Tensor& x) { return pointwise("cosh", x, Cosh{}, Autocasts::to_float32); }
Tensor tanh(const Tensor& x) { return pointwise("tanh", x, Tanh{}); }
LinearActivationPtr linear_tanh() { return pointwise_linear("tanh", Tanh{}); }
Tensor asinh(const Tensor& x) { return pointwise("asinh", x, Asinh{}); }
Tensor acosh(const Tensor& x) { return pointwise("acosh", x, Acosh{}); }
Tensor atanh(const Tensor& x) { return pointwise("atanh", x, Atanh{}); }

}  // namespace pleat
