#include "pleat/ops/elementwise/select.h"

#include <algorithm>
#include <limits>

#include "pleat/autograd/call.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/compare_kernels.h"
#include "pleat/ops/elementwise/select_kernels.h"
#include "pleat/ops/shape/view.h"

namespace pleat {

using ops::number_like;

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Call call("where", {condition, a, b});
  return call.result(ops::where(condition, a, b),
                     grad_of(a, [c = saved(condition)](const Tensor& dy) { return where(*c, dy, 0); }),
                     grad_of(b, [c = saved(condition)](const Tensor& dy) { return where(*c, 0, dy); }));
}

Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  return where(condition, a, number_like(b, a, "where"));
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  return where(condition, number_like(a, b, "where"), b);
}
Tensor where(const Tensor& condition, Scalar a, Scalar b) { return ops::where(condition, a, b); }

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  const Call call("masked_fill", {x, mask}, {{"value", value}});
  return call.result(ops::masked_fill(x, mask, value), grad_of(x, [mask = saved(mask)](const Tensor& dy) {
                       return masked_fill(dy, *mask, 0);
                     }));
}

const Tensor& masked_fill_(const Tensor& x, const Tensor& mask, Scalar value) {
  const Call call("masked_fill", {x, mask}, {{"value", value}});
  if (changes_tape(x)) {
    check<ShapeError>(broadcast(x.shape(), mask.shape(), "masked_fill_") == x.shape(),
                      "masked_fill_: {} does not broadcast to {}", mask.shape(), x.shape());
    replace_in_place("masked_fill_", x,
                     [&](const Tensor& before) { return masked_fill(before, mask, value); });
  } else {
    ops::masked_fill_into(x, mask, value);
  }
  call.gives(x);
  return x;
}

namespace {

/// Whether element [i, j] of a matrix has j - i < diagonal.
Tensor before_diagonal(const char* op, const Tensor& x, int64_t diagonal) {
  check<ShapeError>(x.rank() >= 2, "{}: needs matrices [..., N, M], got {}", op, x);
  const int64_t rows = x.size(-2), columns = x.size(-1);
  // What lies further out is as far.
  const int64_t shift = std::clamp(diagonal, -rows, columns);
  const ArangeOptions options{.device = x.device()};
  return ops::less(ops::view(arange(columns, options), {1, columns}),
                   ops::view(arange(shift, shift + rows, 1, options), {rows, 1}));
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
