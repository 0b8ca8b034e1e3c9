// Host and device.
#include "pleat/ops/elementwise/dropout.h"

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat {

struct MaskedScale {
  static constexpr std::size_t mask = 1;
  double scale;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, uint8_t stays) const {
    const T scaled = a * static_cast<T>(scale);
    return stays != 0 ? scaled : T(0);
  }
};

namespace {

/// scale * x where the mask (bool, broadcast to x) is true, else 0. Linear in x, and its own adjoint.
Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale) {
  const Call call("dropout", {x});  // the mask is random, which has no form in a graph
  const Tensor y = empty_like(x);
  ops::map_into<ops::Floating>("dropout", x.dtype(), y, std::array{x, mask}, MaskedScale{scale});
  return call.result(y, grad_of(x, [mask = saved(mask), scale](const Tensor& dy) {
                       return masked_scale(dy, *mask, scale);
                     }));
}

/// The mask is true, so that the element stays, with probability 1 - p: the same for every memory format,
/// device and number of threads.
Tensor dropout_by(const char* op, const Tensor& x, const Shape& mask_shape, MemoryFormat format, double p,
                  bool training, Generator& generator) {
  check<DTypeError>(is_floating(x.dtype()), "{}: needs a floating type, got {}", op, x);
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
  if (!training || p == 0) return x;
  const Tensor mask = [&] {
    const RecordOp range("dropout_mask");
    return ops::to_format(bernoulli(1 - p, mask_shape, x.device(), generator), format);
  }();
  return masked_scale(x, mask, p == 1 ? 0 : 1 / (1 - p));
}

}  // namespace

Tensor dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  return dropout_by("dropout", x, x.shape(), x.memory_format(), p, training, generator);
}

Tensor channel_dropout(const Tensor& x, Real p, Flag training, Generator& generator) {
  check<ShapeError>(x.rank() >= 2, "channel_dropout: needs [N, C, ...], got {}", x);
  Shape shape(x.shape().size(), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return dropout_by("channel_dropout", x, shape, MemoryFormat::contiguous, p, training, generator);
}

}  // namespace pleat
