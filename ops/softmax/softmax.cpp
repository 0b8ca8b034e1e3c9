#include "pleat/ops/softmax/softmax.h"

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/widened.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/softmax/kernels.h"

namespace pleat {

// The backward is one kernel; only when gradients are recorded themselves is it spelt out in differentiable
// functions.

Tensor softmax(const Tensor& input, Integer dim) {
  const Call call("softmax", {input}, {{"dim", dim}}, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::softmax_forward("softmax", x, dim, false);
  return call.result(y, grad_of(x, [y = saved(y), dim](const Tensor& dy) {
                       if (!grad_enabled())
                         return ops::softmax_backward("softmax_backward", dy, *y, dim, false);
                       const Tensor wide = widened(*y), slopes = widened(dy);
                       return wide * (slopes - sum(slopes * wide, dim, true));
                     }));
}

Tensor log_softmax(const Tensor& input, Integer dim) {
  const Call call("log_softmax", {input}, {{"dim", dim}}, Autocasts::to_float32);
  const Tensor& x = call.input(0);
  const Tensor y = ops::softmax_forward("log_softmax", x, dim, true);
  return call.result(y, grad_of(x, [y = saved(y), dim](const Tensor& dy) {
                       if (!grad_enabled())
                         return ops::softmax_backward("log_softmax_backward", dy, *y, dim, true);
                       const Tensor slopes = widened(dy);
                       return slopes - exp(widened(*y)) * sum(slopes, dim, true);
                     }));
}

Tensor softmin(const Tensor& x, Integer dim) {
  (void)normalize_dim(dim, x.rank(), "softmin");
  // Integers would wrap around.
  return softmax(-(is_floating(x.dtype()) ? x : x.to(float32)), dim);
}

}  // namespace pleat
