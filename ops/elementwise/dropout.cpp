#include "pleat/ops/elementwise/dropout.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/record_function.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/select_functors.h"

namespace pleat::ops {

Tensor dropout_mask(const char* op, Shape shape, double p, MemoryFormat format, Device device,
                    Generator& generator) {
  const RecordOp range("dropout_mask");
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
  return to_format(bernoulli(1 - p, std::move(shape), device, generator), format);
}

Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale) {
  const RecordOp range("dropout", x, mask);
  const Tensor out = empty_like(x);
  map_into<Floating>("dropout", x.dtype(), out, std::array{x, mask}, MaskedScale{scale});
  return out;
}

}  // namespace pleat::ops
