#include "pleat/ops/elementwise/dropout.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {

Tensor dropout_mask(const char* op, Shape shape, double p, MemoryFormat format, Generator& generator) {
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
  return to_format(bernoulli(1 - p, std::move(shape), {}, generator), format);
}

Tensor masked_scale(const Tensor& x, const Tensor& mask, double scale) {
  const Tensor out = empty_like(x);
  dispatch_floating("dropout", x.dtype(), [&]<class T>(Type<T>) {
    map_into<T, T, bool>("dropout", out, x, mask, [factor = static_cast<T>(scale)](T a, uint8_t stays) {
      const T scaled = a * factor;
      return stays != 0 ? scaled : T(0);
    });
  });
  return out;
}

}  // namespace pleat::ops
