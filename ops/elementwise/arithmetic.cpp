// Host and device.
#include "pleat/ops/elementwise/arithmetic.h"

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/widened.h"

namespace pleat {
namespace ops {

void add_into(const Tensor& out, const Tensor& a, const Tensor& b) { binary_into("add", out, a, b, Plus{}); }
void multiply_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  binary_into("multiply", out, a, b, Times{});
}

Tensor number_like(Number number, const Tensor& like, const char* op) {
  const DType dtype = promote_with_number(like.dtype(), number);
  check_fits(op, number, dtype);
  return full({}, number, {.dtype = dtype, .device = like.device()});
}

}  // namespace ops

using ops::number_like;

Tensor add(const Tensor& a, const Tensor& b) {
  const Call call("add", {a, b});
  return call.result(ops::binary("add", a, b, ops::Plus{}), grad_of(a, [](const Tensor& dy) { return dy; }),
                     grad_of(b, [](const Tensor& dy) { return dy; }));
}

Tensor subtract(const Tensor& a, const Tensor& b) {
  const Call call("subtract", {a, b});
  return call.result(ops::binary("subtract", a, b, ops::Minus{}),
                     grad_of(a, [](const Tensor& dy) { return dy; }),
                     grad_of(b, [](const Tensor& dy) { return -dy; }));
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  const Call call("multiply", {a, b});
  return call.result(ops::binary("multiply", a, b, ops::Times{}),
                     grad_of(a, [b = saved(b)](const Tensor& dy) { return dy * *b; }),
                     grad_of(b, [a = saved(a)](const Tensor& dy) { return dy * *a; }));
}

Tensor divide(const Tensor& a, const Tensor& b) {
  const Call call("divide", {a, b});
  const Tensor y = ops::binary_floating("divide", a, b, ops::Over{});
  return call.result(
      y, grad_of(a, [b = saved(b)](const Tensor& dy) { return dy / *b; }),
      grad_of(b, [b = saved(b), y = saved(y)](const Tensor& dy) { return -(widened(dy) * *y / *b); }));
}

Tensor negate(const Tensor& x) {
  const Call call("negate", {x});
  return call.result(ops::unary_number("negate", x, ops::Negate{}),
                     grad_of(x, [](const Tensor& dy) { return -dy; }));
}

namespace {

/// The result of a division is floating, so the number need not fit an integer type.
Tensor divisor_like(Number number, const Tensor& like) {
  return number_like(is_floating(like.dtype()) ? number : Number(number.to<double>()), like, "divide");
}

}  // namespace

Tensor add(const Tensor& a, Number b) { return add(a, number_like(b, a, "add")); }
Tensor subtract(const Tensor& a, Number b) { return subtract(a, number_like(b, a, "subtract")); }
Tensor multiply(const Tensor& a, Number b) { return multiply(a, number_like(b, a, "multiply")); }
Tensor divide(const Tensor& a, Number b) { return divide(a, divisor_like(b, a)); }
Tensor add(Number a, const Tensor& b) { return add(number_like(a, b, "add"), b); }
Tensor subtract(Number a, const Tensor& b) { return subtract(number_like(a, b, "subtract"), b); }
Tensor multiply(Number a, const Tensor& b) { return multiply(number_like(a, b, "multiply"), b); }
Tensor divide(Number a, const Tensor& any_b) {
  const Tensor b = autocast_to_float32(any_b);
  return divide(divisor_like(a, b), b);
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  (void)broadcast(broadcast(a.shape(), b.shape(), "addcmul"), x.shape(), "addcmul");
  const RecordOp range("addcmul", x, a, b);
  return x + (a * b) * value;
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  (void)broadcast(broadcast(a.shape(), b.shape(), "addcdiv"), x.shape(), "addcdiv");
  const RecordOp range("addcdiv", x, a, b);
  return x + (a / b) * value;
}

namespace {

void subtract_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  ops::binary_into("subtract", out, a, b, ops::Minus{});
}
void divide_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  ops::binary_floating_into("divide", out, a, b, ops::Over{});
}

using Function = Tensor (*)(const Tensor&, const Tensor&);
using IntoFunction = void (*)(const Tensor&, const Tensor&, const Tensor&);

/// `traced`: the function that `op` is in place.
const Tensor& in_place(const char* op, const char* traced, const Tensor& x, const Tensor& other,
                       Function function, IntoFunction into) {
  check<ShapeError>(broadcast(x.shape(), other.shape(), op) == x.shape(), "{}: {} does not broadcast to {}",
                    op, other.shape(), x.shape());
  const DType result = promote(x.dtype(), other.dtype());
  check<DTypeError>(is_floating(x.dtype()) || (!is_floating(result) && into != divide_into),
                    "{}: the result is floating, which a tensor of {} cannot hold; convert it with "
                    "to(float32), or use the function that returns a new tensor",
                    op, x.dtype());
  const Call call(traced, {x, other});
  if (changes_tape(x, {other}))
    replace_in_place(op, x, [&](const Tensor& before) {
      const bool itself = other.shared_impl() == x.shared_impl();  // x *= x
      return function(before, itself ? before : other).to(x.dtype());
    });
  else
    into(x, x, other);
  return call.gives(x);
}

}  // namespace

const Tensor& add_(const Tensor& x, const Tensor& other) {
  return in_place("add_", "add", x, other, add, ops::add_into);
}
const Tensor& subtract_(const Tensor& x, const Tensor& other) {
  return in_place("subtract_", "subtract", x, other, subtract, subtract_into);
}
const Tensor& multiply_(const Tensor& x, const Tensor& other) {
  return in_place("multiply_", "multiply", x, other, multiply, ops::multiply_into);
}
const Tensor& divide_(const Tensor& x, const Tensor& other) {
  return in_place("divide_", "divide", x, other, divide, divide_into);
}

const Tensor& fill_(const Tensor& x, Scalar value) {
  const Call call("fill", {x}, {{"value", value}});
  if (changes_tape(x))
    replace_in_place("fill_", x, [&](const Tensor& before) { return full_like(before, value); });
  else
    ops::fill(x, value);
  return call.gives(x);
}

const Tensor& add_(const Tensor& x, Number other) { return add_(x, number_like(other, x, "add_")); }
const Tensor& subtract_(const Tensor& x, Number other) {
  return subtract_(x, number_like(other, x, "subtract_"));
}
const Tensor& multiply_(const Tensor& x, Number other) {
  return multiply_(x, number_like(other, x, "multiply_"));
}
const Tensor& divide_(const Tensor& x, Number other) { return divide_(x, divisor_like(other, x)); }

}  // namespace pleat
