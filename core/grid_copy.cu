#include "pleat/core/grid_copy.h"
#include "pleat/core/grid_elementwise.h"

namespace pleat::ops {
namespace {

struct Identity {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T value) const {
    return value;
  }
};

template <class T>
struct Constant {
  T value;
  PLEAT_HOST_DEVICE T operator()() const { return value; }
};

}  // namespace

void grid_copy(const Tensor& to, const Tensor& from) {
  dispatch(to.dtype(), [&]<class T>(Type<T>) { grid_elementwise<T, T>("copy", to, {from}, Identity{}); });
}

void grid_fill(const Tensor& x, const Number& value) {
  dispatch(x.dtype(),
           [&]<class T>(Type<T>) { grid_elementwise<T>("fill", x, {}, Constant<T>{value.to<T>()}); });
}

}  // namespace pleat::ops
