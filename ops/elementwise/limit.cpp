// Host and device.
#include "pleat/ops/elementwise/limit.h"

#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/spatial/limit.h"

namespace pleat::ops {
namespace {

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

void limit_into(const Tensor& out, const Tensor& x, const Bounds& bounds) {
  const RecordOp range("limit", x);
  map_into<Floating>("limit", x.dtype(), out, std::array{x}, LimitTo{bounds});
}
Tensor limit_backward(const Tensor& dy, const Tensor& y, const Bounds& bounds) {
  const RecordOp range("limit_backward", dy, y);
  return binary_floating("limit_backward", dy, y, LimitBackward{bounds});
}

}  // namespace pleat::ops
