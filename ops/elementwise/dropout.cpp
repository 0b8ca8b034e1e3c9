#include "pleat/ops/elementwise/dropout.h"

#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/elementwise/dropout_kernels.h"

namespace pleat {
namespace {

/// Linear in x, and its own adjoint.
Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale) {
  return record(
      "dropout", ops::masked_scale(x, mask, scale),
      {grad_of(x, [mask = saved(mask), scale](const Tensor& dy) { return masked_scale(dy, *mask, scale); })});
}

Tensor dropout_by(const char* op, const Tensor& x, const Shape& mask_shape, MemoryFormat format, double p,
                  bool training, Generator& generator) {
  check<DTypeError>(is_floating(x.dtype()), "{}: needs a floating type, got {}", op, x.describe());
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
  if (!training || p == 0) return x;
  const Tensor mask = ops::dropout_mask(op, mask_shape, p, format, x.device(), generator);
  return masked_scale(x, mask, p == 1 ? 0 : 1 / (1 - p));
}

}  // namespace

Tensor dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  return dropout_by("dropout", x, x.shape(), x.memory_format(), p, training, generator);
}

Tensor channel_dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  check<ShapeError>(x.rank() >= 2, "channel_dropout: needs [N, C, ...], got {}", x.describe());
  Shape shape(x.shape().size(), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return dropout_by("channel_dropout", x, shape, MemoryFormat::contiguous, p, training, generator);
}

}  // namespace pleat
