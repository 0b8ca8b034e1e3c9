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

// Bitwise on bools: both sides are known, and a branch would not vectorise.
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return logical("logical_and", a, b, [](bool p, bool q) { return static_cast<bool>(p & q); });
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return logical("logical_or", a, b, [](bool p, bool q) { return static_cast<bool>(p | q); });
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return logical("logical_xor", a, b, [](bool p, bool q) { return p != q; });
}
Tensor logical_not(const Tensor& x) {
  const Tensor out = unary_result(x, boolean);
  map_into<bool, bool>("logical_not", out, x, [](bool p) { return !p; });
  return out;
}

}  // namespace pleat::ops
