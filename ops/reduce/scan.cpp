#include "pleat/ops/reduce/scan.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/scan_kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// `n` elements along the dimension d from `first` on, off the tape.
Tensor part_of(const Tensor& x, std::size_t d, int64_t first, int64_t n) {
  Shape shape = x.shape();
  shape[d] = n;
  return x.as_strided(shape, x.strides(), x.offset() + first * x.strides()[d]);
}

Tensor elements_shifted(const Tensor& x, int64_t dim, int64_t by, double fill) {
  const auto d = static_cast<std::size_t>(normalize_dim(dim, x.rank(), "shifted"));
  const Tensor y = full_like(x, fill);
  if (x.rank() == 0) {
    if (by == 0) ops::copy_into(y, x);
    return y;
  }
  const int64_t size = x.shape()[d];
  const int64_t distance = std::clamp<int64_t>(by, -size, size);
  const int64_t moved = size - std::abs(distance);
  if (moved > 0)
    ops::copy_into(part_of(y, d, std::max<int64_t>(distance, 0), moved),
                   part_of(x, d, std::max<int64_t>(-distance, 0), moved));
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& input, Integer dim, Flag reverse) {
  const Call call("cumsum", {input}, {{"dim", dim}, {"reverse", reverse}}, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  return call.result(ops::running("cumsum", x, dim, reverse, false),
                     grad_of(x, [dim, reverse](const Tensor& dy) { return cumsum(dy, dim, !reverse); }));
}

Tensor cumprod(const Tensor& input, Integer dim, Flag reverse) {
  const Call call("cumprod", {input}, {{"dim", dim}, {"reverse", reverse}}, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::running("cumprod", x, dim, reverse, true);
  // dx[i] = (product before i) * (dy[i] + x[i+1] (dy[i+1] + x[i+2] (...))): the bracket is a linear
  // recurrence.
  return call.result(y, grad_of(x, [dim, reverse, x = saved(x), y = saved(y)](const Tensor& dy) {
                       const int64_t step = reverse ? -1 : 1;
                       const Tensor before = shifted(*y, dim, step, 1);
                       // linear_scan backwards takes its factor one place on; run forwards it takes that of
                       // the place.
                       const Tensor factors = reverse ? shifted(*x, dim, 1, 0) : *x;
                       return before * linear_scan(factors, dy, dim, !reverse);
                     }));
}

Tensor diff(const Tensor& x, Integer n, Integer dim) {
  const RecordOp range("diff", x);
  check<ShapeError>(x.rank() >= 1, "diff: needs a dimension, got {}", x);
  check<DTypeError>(x.dtype() != boolean, "diff: needs numbers, got {}; convert it with to(int64)", x);
  check<ValueError>(n >= 0, "diff: n must be at least 0, got {}", n);
  const int64_t along = normalize_dim(dim, x.rank(), "diff");
  Tensor y = x;
  const int64_t times = std::min<int64_t>(n, x.size(along));
  if (x.numel() == 0) return narrow(x, along, 0, x.size(along) - times);
  for (int64_t i = 0; i < times; ++i) {
    const int64_t length = y.size(along) - 1;
    y = narrow(y, along, 1, length) - narrow(y, along, 0, length);
  }
  return y;
}

Tensor linear_scan(const Tensor& a, const Tensor& b, Integer dim, Flag reverse) {
  const Call call("linear_scan", {a, b}, {{"dim", dim}, {"reverse", reverse}});
  check<ShapeError>(a.shape() == b.shape(), "linear_scan: a and b must have one shape, got {} and {}", a, b);
  check<DTypeError>(a.dtype() == b.dtype() && is_floating(a.dtype()),
                    "linear_scan: a and b must have one floating type, got {} and {}", a, b);
  check<DeviceError>(a.device() == b.device(), "linear_scan: a and b must be on one device, got {} and {}", a,
                     b);
  const Tensor y = ops::recurrence(a, b, dim, reverse);
  // The gradient of b runs the other way with the same factors. Forwards y[i] has a[i] y[i-1]; backwards
  // y[i-1] has a[i] y[i].
  return call.result(y,
                     grad_of(a,
                             [dim, reverse, a = saved(a), y = saved(y)](const Tensor& dy) {
                               const Tensor db = linear_scan(*a, dy, dim, !reverse);
                               return reverse ? shifted(db, dim, 1, 0) * *y : db * shifted(*y, dim, 1, 0);
                             }),
                     grad_of(b, [dim, reverse, a = saved(a)](const Tensor& dy) {
                       return linear_scan(*a, dy, dim, !reverse);
                     }));
}

Tensor shifted(const Tensor& x, Integer dim, Integer by, Real fill) {
  const Call call("shifted", {x}, {{"dim", dim}, {"by", by}, {"fill", double{fill}}});
  // The least integer has no negative one; the next shifts everything out of sight, too.
  const int64_t back = -std::max<int64_t>(by, -std::numeric_limits<int64_t>::max());
  return call.result(elements_shifted(x, dim, by, fill),
                     grad_of(x, [dim, back](const Tensor& dy) { return shifted(dy, dim, back, 0); }));
}

}  // namespace pleat
