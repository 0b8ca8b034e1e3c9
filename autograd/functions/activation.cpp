#include "pleat/autograd/functions/activation.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/ops/elementwise/activation.h"

namespace pleat {
namespace {

/// Linear in dy, and its own adjoint.
Tensor relu_backward(const Tensor& dy, const Tensor& y) {
  return record("relu_backward", ops::relu_backward(dy, y),
                {grad_of(dy, [y = saved(y)](const Tensor& ddx) { return relu_backward(ddx, *y); })});
}

}  // namespace

Tensor relu(const Tensor& x) {
  const Tensor y = ops::relu(x);
  return record("relu", y, {grad_of(x, [y = saved(y)](const Tensor& dy) { return relu_backward(dy, *y); })});
}

const Tensor& relu_(const Tensor& x) {
  if (autograd::anything_to_record({x}))
    become("relu_", x, relu);
  else
    ops::relu_into(x, x);
  return x;
}

Tensor sigmoid(const Tensor& x) {
  const Tensor y = ops::sigmoid(x);
  return record("sigmoid", y, {grad_of(x, [y = saved(y)](const Tensor& dy) {
                  return grad_enabled() ? dy * (*y * (1 - *y)) : ops::sigmoid_backward(dy, *y);
                })});
}

}  // namespace pleat
