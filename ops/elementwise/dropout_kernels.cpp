// Host and device.
#include "pleat/ops/elementwise/dropout_kernels.h"

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {

struct MaskedScale {
  static constexpr std::size_t mask = 1;
  double scale;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, uint8_t stays) const {
    const T scaled = a * static_cast<T>(scale);
    return stays != 0 ? scaled : T(0);
  }
};

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
