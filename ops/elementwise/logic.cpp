// Host and device.
#include "pleat/ops/elementwise/logic.h"

#include "pleat/autograd/call.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

struct And {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a & b) != 0; }
};
struct Or {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a | b) != 0; }
};
struct Xor {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return a != b; }
};
struct Not {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a) const { return a == 0; }
};

template <class F>
Tensor logical(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Call call(op, {a, b});
  const Tensor out = binary_result(op, a, b, boolean);
  map_into<Truths>(op, boolean, out, std::array{a, b}, f);
  return call.gives(out);
}

}  // namespace

Tensor logical_and(const Tensor& a, const Tensor& b) { return logical("logical_and", a, b, And{}); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return logical("logical_or", a, b, Or{}); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return logical("logical_xor", a, b, Xor{}); }
Tensor logical_not(const Tensor& x) {
  const Call call("logical_not", {x});
  const Tensor out = unary_result(x, boolean);
  map_into<Truths>("logical_not", boolean, out, std::array{x}, Not{});
  return call.gives(out);
}

}  // namespace pleat::ops
