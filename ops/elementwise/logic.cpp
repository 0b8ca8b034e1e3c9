#include "pleat/ops/elementwise/logic.h"

#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
namespace {

template <class F>
Tensor logical(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Tensor out = binary_result(op, a, b, boolean);
  map_into<bool, bool, bool>(op, out, a, b, f);
  return out;
}

}  // namespace

// Bitwise: both sides are known, and a branch would not vectorise.
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", a, b, [](uint8_t p, uint8_t q) { return (p & q) != 0; });
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", a, b, [](uint8_t p, uint8_t q) { return (p | q) != 0; });
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return logical("logical_xor", a, b, [](uint8_t p, uint8_t q) { return p != q; });
}
Tensor logical_not(const Tensor& x) {
  const Tensor out = unary_result(x, boolean);
  map_into<bool, bool>("logical_not", out, x, [](uint8_t p) { return p == 0; });
  return out;
}

}  // namespace pleat::ops
