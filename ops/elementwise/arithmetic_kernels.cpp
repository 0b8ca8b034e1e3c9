// Host and device.
#include "pleat/ops/elementwise/arithmetic_kernels.h"

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat::ops {
Tensor add(const Tensor& a, const Tensor& b) { return binary("add", a, b, Plus{}); }
Tensor subtract(const Tensor& a, const Tensor& b) { return binary("subtract", a, b, Minus{}); }
Tensor multiply(const Tensor& a, const Tensor& b) { return binary("multiply", a, b, Times{}); }
Tensor divide(const Tensor& a, const Tensor& b) { return binary_floating("divide", a, b, Over{}); }

Tensor negate(const Tensor& x) { return unary_number("negate", x, Negate{}); }

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) { binary_into("add", out, a, b, Plus{}); }
void subtract_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("subtract", out, a, b, Minus{});
}
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("multiply", out, a, b, Times{});
}
void divide_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_floating_into("divide", out, a, b, Over{});
}

Tensor number_like(Number number, const Tensor& like, const char* op) {
  const DType dtype = promote_with_number(like.dtype(), number);
  check_fits(op, number, dtype);
  return full({}, number, {.dtype = dtype, .device = like.device()});
}

}  // namespace pleat::ops
