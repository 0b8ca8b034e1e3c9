// Host and device.
#include "pleat/ops/elementwise/relu.h"

#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/spatial/limit.h"

namespace pleat::ops {
namespace {

struct Relu {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct ReluBackward {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T y) const {
    return y <= T(0) ? T(0) : dy;
  }
};

struct LimitTo {
  Limit<double> limit;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T x) const {
    return static_cast<T>(limit.limited(static_cast<double>(x)));
  }
};

struct LimitBackward {
  Limit<double> limit;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T y) const {
    return limit.is_closed(static_cast<double>(y)) ? T(0) : dy;
  }
};

}  // namespace

Tensor relu(const Tensor& x) { return unary_number("relu", x, Relu{}); }
void relu_into(const Tensor& out, const Tensor& x) { unary_number_into("relu", out, x, Relu{}); }
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return binary_floating("relu_backward", dy, y, ReluBackward{});
}

void limit_into(const Tensor& out, const Tensor& x, const Bounds& bounds) {
  unary_number_into("limit", out, x, LimitTo{bounds});
}
Tensor limit_backward(const Tensor& dy, const Tensor& y, const Bounds& bounds) {
  return binary_floating("limit_backward", dy, y, LimitBackward{bounds});
}

}  // namespace pleat::ops
