// Host and device.
#include "pleat/ops/elementwise/select.h"

#include <algorithm>
#include <limits>

#include "pleat/autograd/call.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace ops {

struct Where {
  static constexpr std::size_t mask = 0;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};

}  // namespace ops

using ops::number_like;

namespace {

void check_mask(const char* op, const char* what, const Tensor& mask) {
  check<DTypeError>(mask.dtype() == boolean, "{}: the {} must be bool, got {}; compare it first ({} != 0)",
                    op, what, mask, what);
}

void where_into(const char* op, const Tensor& out, const Tensor& condition, const Tensor& a,
                const Tensor& b) {
  ops::map_into<ops::Stored>(op, out.dtype(), out, std::array{condition, a, b}, ops::Where{});
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
  const Call call("where", {condition, a, b});
  check_mask("where", "condition", condition);
  const Shape shape = broadcast(broadcast(a.shape(), b.shape(), "where"), condition.shape(), "where");
  const std::array inputs = {a, b, condition};
  const Tensor y = empty_as(inputs, shape, promote(a.dtype(), b.dtype()));
  where_into("where", y, condition, a, b);
  return call.result(y, grad_of(a, [c = saved(condition)](const Tensor& dy) { return where(*c, dy, 0); }),
                     grad_of(b, [c = saved(condition)](const Tensor& dy) { return where(*c, 0, dy); }));
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
  const Call call("masked_fill", {x, mask}, {{"value", value}});
  check_mask("masked_fill", "mask", mask);
  const Tensor number = fill_value("masked_fill", value, x);
  const Tensor y = ops::binary_result("masked_fill", x, mask, x.dtype());
  where_into("masked_fill", y, mask, number, x);
  return call.result(
      y, grad_of(x, [mask = saved(mask)](const Tensor& dy) { return masked_fill(dy, *mask, 0); }));
}

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value) {
  const Call call("masked_fill", {x, mask}, {{"value", value}});
  if (changes_tape(x)) {
    check<ShapeError>(broadcast(x.shape(), mask.shape(), "masked_fill_") == x.shape(),
                      "masked_fill_: {} does not broadcast to {}", mask.shape(), x.shape());
    replace_in_place("masked_fill_", x,
                     [&](const Tensor& before) { return masked_fill(before, mask, value); });
  } else {
    check_mask("masked_fill_", "mask", mask);
    where_into("masked_fill_", x, mask, fill_value("masked_fill_", value, x), x);
  }
  return call.gives(x);
}

namespace {

/// Whether element [i, j] of a matrix has j - i < diagonal.
Tensor before_diagonal(const char* op, const Tensor& x, int64_t diagonal) {
  check<ShapeError>(x.rank() >= 2, "{}: needs matrices [..., N, M], got {}", op, x);
  const int64_t rows = x.size(-2), columns = x.size(-1);
  // What lies further out is as far.
  const int64_t shift = std::clamp(diagonal, -rows, columns);
  const ArangeOptions options{.device = x.device()};
  return less(view(arange(columns, options), {1, columns}),
              view(arange(shift, shift + rows, 1, options), {rows, 1}));
}

}  // namespace

Tensor tril(const Tensor& x, Integer diagonal) {
  const int64_t last = std::numeric_limits<int64_t>::max();
  const Call call("tril", {x}, {{"diagonal", diagonal}});
  return call.gives(where(before_diagonal("tril", x, diagonal == last ? last : diagonal + 1), x, false));
}
Tensor triu(const Tensor& x, Integer diagonal) {
  const Call call("triu", {x}, {{"diagonal", diagonal}});
  return call.gives(where(before_diagonal("triu", x, diagonal), false, x));
}

}  // namespace pleat
