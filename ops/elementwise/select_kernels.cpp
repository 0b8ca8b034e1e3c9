// Host and device.
#include "pleat/ops/elementwise/select_kernels.h"

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {

struct Where {
  static constexpr std::size_t mask = 0;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};

namespace {

void check_mask(const char* op, const char* what, const Tensor& mask) {
  check<DTypeError>(mask.dtype() == boolean, "{}: the {} must be bool, got {}; compare it first ({} != 0)",
                    op, what, mask.describe(), what);
}

void where_into(const char* op, const Tensor& out, const Tensor& condition, const Tensor& a,
                const Tensor& b) {
  map_into<Stored>(op, out.dtype(), out, std::array{condition, a, b}, Where{});
}

/// The number as an element of `x`'s type.
Tensor fill_value(const char* op, Number value, const Tensor& x) {
  check<DTypeError>(promote_with_number(x.dtype(), value) == x.dtype(), "{}: a tensor of {} cannot hold {}",
                    op, x.dtype(), value);
  return number_like(value, x, op);
}

/// The number as `scalar` makes it, on the device of `x`.
Tensor number_beside(const Tensor& x, Number value) {
  const DType dtype = value.kind() == float64 ? float32 : value.kind();
  return full({}, value, {.dtype = dtype, .device = x.device()});
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const RecordOp range("where", condition, a, b);
  check_mask("where", "condition", condition);
  const Shape shape = broadcast(broadcast(a.shape(), b.shape(), "where"), condition.shape(), "where");
  const std::array inputs = {a, b, condition};
  const Tensor out = empty_as(inputs, shape, promote(a.dtype(), b.dtype()));
  where_into("where", out, condition, a, b);
  return out;
}

Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  return where(condition, a, number_like(b, a, "where"));
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  return where(condition, number_like(a, b, "where"), b);
}
Tensor where(const Tensor& condition, Scalar a, Scalar b) {
  return where(condition, number_beside(condition, a), number_beside(condition, b));
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  const RecordOp range("masked_fill", x, mask);
  check_mask("masked_fill", "mask", mask);
  const Tensor number = fill_value("masked_fill", value, x);
  const Tensor out = binary_result("masked_fill", x, mask, x.dtype());
  where_into("masked_fill", out, mask, number, x);
  return out;
}

void masked_fill_into(const Tensor& x, const Tensor& mask, Scalar value) {
  const RecordOp range("masked_fill_", x, mask);
  check_mask("masked_fill_", "mask", mask);
  where_into("masked_fill_", x, mask, fill_value("masked_fill_", value, x), x);
}

}  // namespace pleat::ops
