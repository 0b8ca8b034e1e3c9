// Host and device.
#include <algorithm>

#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/kernels.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/math_functors.h"

/// Functions of math.h with more than one operand.

namespace pleat::ops {
namespace {

template <class F>
Tensor binary_ordered(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const RecordOp range(op, a, b);
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor out = binary_result(op, a, b, dtype);
  map_into<Ordered>(op, dtype, out, std::array{a, b}, f);
  return out;
}

DType clamp_dtype(const char* op, const Tensor& x, const ClampOptions& bounds) {
  check<ValueError>(bounds.min || bounds.max, "{}: needs a bound, min or max or both", op);
  DType dtype = x.dtype();
  if (bounds.min) dtype = promote_with_number(dtype, *bounds.min);
  if (bounds.max) dtype = promote_with_number(dtype, *bounds.max);
  // A bound beyond the near end of the type is none; beyond the far end no element would keep to it.
  const auto beyond = [dtype](const std::optional<Number>& bound, double side) {
    return bound && !fits(*bound, dtype) && bound->to<double>() * side > 0;
  };
  if (beyond(bounds.min, 1))
    fail<ValueError>("{}: min = {} is above all that {} holds", op, bounds.min->to<double>(), dtype);
  if (beyond(bounds.max, -1))
    fail<ValueError>("{}: max = {} is below all that {} holds", op, bounds.max->to<double>(), dtype);
  return dtype;
}

template <class F>
Tensor within_bounds(const char* op, const Tensor& dy, const Tensor& x, const ClampOptions& bounds) {
  const RecordOp range(op, dy, x);
  clamp_dtype(op, x, bounds);
  const Tensor out = binary_result(op, dy, x, promote(dy.dtype(), x.dtype()));
  map_into<Floating>(op, out.dtype(), out, std::array{dy, x}, F{{bounds.min, bounds.max}});
  return out;
}

}  // namespace

Tensor pow(const Tensor& base, const Tensor& exponent) { return binary("pow", base, exponent, Power{}); }

Tensor pow(const Tensor& base, Number exponent) {
  if (!is_floating(promote_with_number(base.dtype(), exponent))) {
    check<ValueError>(
        exponent.to<int64_t>() >= 0,
        "pow: integers cannot be raised to the negative integer power {}; convert them with to(float32)",
        exponent.to<int64_t>());
    return pow(base, number_like(exponent, base, "pow"));
  }
  const auto e = exponent.to<double>();
  const auto apply = [&](const auto& f) { return unary_floating("pow", base, f); };
  if (e == 2) return apply(Square{});
  if (e == 3) return apply(Cube{});
  if (e == 1) return copy(cast(base, floating_result(base.dtype())));
  if (e == 0.5) return apply(Sqrt{});
  if (e == -0.5) return apply(Rsqrt{});
  if (e == -1) return apply(Reciprocal{});
  if (e == -2) return apply(ReciprocalSquare{});
  return apply(PowerOf{e});
}

Tensor pow(Number base, const Tensor& exponent) { return pow(number_like(base, exponent, "pow"), exponent); }

Tensor remainder(const Tensor& a, const Tensor& b) {
  const RecordOp range("remainder", a, b);
  if (!is_floating(promote(a.dtype(), b.dtype()))) {
    const Tensor zeros = to_device(equal(b, 0), {});
    const bool* is_zero = zeros.data<bool>();
    check<ValueError>(std::find(is_zero, is_zero + zeros.numel(), true) == is_zero + zeros.numel(),
                      "remainder: integers cannot be divided by 0");
  }
  return binary("remainder", a, b, Remainder{});
}

Tensor remainder(const Tensor& a, Number b) { return remainder(a, number_like(b, a, "remainder")); }

Tensor maximum(const Tensor& a, const Tensor& b) { return binary_ordered("maximum", a, b, Maximum{}); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary_ordered("minimum", a, b, Minimum{}); }

void clamp_into(const Tensor& out, const Tensor& x, ClampOptions bounds) {
  const RecordOp range("clamp", x);
  map_into<Numbers>("clamp", clamp_dtype("clamp", x, bounds), out, std::array{x},
                    Clamp{{bounds.min, bounds.max}});
}

Tensor clamp(const Tensor& x, ClampOptions bounds) {
  const RecordOp range("clamp", x);
  const Tensor out = unary_result(x, clamp_dtype("clamp", x, bounds));
  clamp_into(out, x, bounds);
  return out;
}

Tensor clamp_backward(const Tensor& dy, const Tensor& x, ClampOptions bounds) {
  return within_bounds<ClampBackward>("clamp_backward", dy, x, bounds);
}

Tensor hardtanh_backward(const Tensor& dy, const Tensor& x, ClampOptions bounds) {
  return within_bounds<HardtanhBackward>("hardtanh_backward", dy, x, bounds);
}

void lerp_into(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& weight) {
  const RecordOp range("lerp", a, b, weight);
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  map_into<Floating>("lerp", floating_result(dtype), out, std::array{a, b, weight}, Lerp{});
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const RecordOp range("lerp", a, b, weight);
  const Shape shape = broadcast(broadcast(a.shape(), b.shape(), "lerp"), weight.shape(), "lerp");
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  const std::array inputs = {a, b, weight};
  const Tensor out = empty_as(inputs, shape, floating_result(dtype));
  lerp_into(out, a, b, weight);
  return out;
}

}  // namespace pleat::ops
