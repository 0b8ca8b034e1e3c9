// Host and device.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <type_traits>

#include "pleat/autograd/call.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/pointwise.h"

/// Functions of math.h with more than one operand.

namespace pleat {
namespace {

using ops::number_like;

struct Atan2 {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& y, const T& x) const {
    return atan2(y, x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& d, const T& y, const T& x) const {
    return d * gradients(y, x, x);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& d, const T& y, const T& x) const {
    return -(d * gradients(y, x, y));
  }

 private:
  /// of / (x^2 + y^2), where `of` is x or y: by the larger one, whose square may overflow.
  template <class T>
  PLEAT_HOST_DEVICE static T gradients(const T& y, const T& x, const T& of) {
    const auto by_x = abs(x) > abs(y);
    const T larger = where(by_x, x, y);
    const T ratio = where(by_x, y, x) / larger;
    return of / larger / (larger * (1 + square(ratio)));
  }
};

/// From the larger one, of which the rest is at most log(2); also where both are infinite.
struct LogAddExp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& a, const T& b) const {
    const T larger = a > b ? a : b;
    return where(a == b, a + Weak(std::numbers::ln2), larger + softplus(-abs(a - b)));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& a, const T& b) const {
    return dy * sigmoid(difference(a, b));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& a, const T& b) const {
    return dy * sigmoid(difference(b, a));
  }

 private:
  /// a - b, but 0 where both are the same infinity.
  template <class T>
  PLEAT_HOST_DEVICE static T difference(const T& a, const T& b) {
    const T d = a - b;
    return where(a == b, where(d == d, d, 0), d);
  }
};

struct Hypot {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return hypot(a, b);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& a, const T& b) const {
    return dy * (a / hypot(a, b));
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& a, const T& b) const {
    return dy * (b / hypot(a, b));
  }
};

/// What goes to one of two that are compared: half at a tie, nothing where it loses, else (with a NaN) all.
template <class T, class Truth>
PLEAT_HOST_DEVICE T winners_share(const T& dy, const Truth& loses, const Truth& ties) {
  return where(loses, 0, where(ties, dy * Weak(0.5), dy));
}

struct Maximum : ops::MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& a, const T& b) const {
    return winners_share(dy, a < b, a == b);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& a, const T& b) const {
    return winners_share(dy, b < a, a == b);
  }
};

struct Minimum : ops::MemoryBound {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_first(const T& dy, const T& a, const T& b) const {
    return winners_share(dy, a > b, a == b);
  }
  template <class T>
  PLEAT_HOST_DEVICE T backward_second(const T& dy, const T& a, const T& b) const {
    return winners_share(dy, b > a, a == b);
  }
};

/// From the nearer end, so that weights 0 and 1 give a and b themselves.
struct Lerp {
  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a, T b, T weight) const {
    return weight < T(0.5) ? a + weight * (b - a) : b - (b - a) * (1 - weight);
  }
};

/// Bounds of any type: for integers the nearest ones of theirs.
class Bounds {
 public:
  Bounds(const std::optional<Number>& low, const std::optional<Number>& high)
      : integers_{low ? low->to<int64_t>() : std::numeric_limits<int64_t>::min(),
                  high ? high->to<int64_t>() : std::numeric_limits<int64_t>::max()},
        numbers_{low ? low->to<double>() : -std::numeric_limits<double>::infinity(),
                 high ? high->to<double>() : std::numeric_limits<double>::infinity()} {}

  template <class T>
  PLEAT_HOST_DEVICE T low() const {
    return bound<T>(0);
  }
  template <class T>
  PLEAT_HOST_DEVICE T high() const {
    return bound<T>(1);
  }

 private:
  template <class T>
  PLEAT_HOST_DEVICE T bound(int side) const {
    if constexpr (std::is_integral_v<T>) {
      constexpr int64_t least = std::numeric_limits<T>::min();
      constexpr int64_t most = std::numeric_limits<T>::max();
      const int64_t bound = integers_[side];
      return static_cast<T>(bound < least ? least : bound > most ? most : bound);
    } else {
      return static_cast<T>(numbers_[side]);
    }
  }

  int64_t integers_[2];
  double numbers_[2];
};

struct Clamp {
  Bounds bounds;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T a) const {
    const T low = bounds.low<T>();
    const T high = bounds.high<T>();
    // A bound of NaN makes all NaN, as a NaN among the elements stays one.
    const T raised = ((a < low) | (low != low)) ? low : a;
    return ((raised > high) | (high != high)) ? high : raised;
  }
};

struct ClampBackward {
  Bounds bounds;

  template <class T>
  PLEAT_HOST_DEVICE T operator()(T dy, T a) const {
    const T low = bounds.low<T>();
    const T high = bounds.high<T>();
    return ((a >= low) & (a <= high)) ? dy : T(0);
  }
};

template <class F>
Tensor ordered(const char* op, const Tensor& a, const Tensor& b, const F& formula) {
  const Call call(op, {a, b});
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor y = ops::binary_result(op, a, b, dtype);
  ops::map_into<ops::Ordered>(op, dtype, y, std::array{a, b}, formula);
  return call.result(y, derivatives_of(op, a, b, formula));
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
    fail<ValueError>("{}: min = {} is above all that {} holds", op, *bounds.min, dtype);
  if (beyond(bounds.max, -1))
    fail<ValueError>("{}: max = {} is below all that {} holds", op, *bounds.max, dtype);
  return dtype;
}

/// dy where x lies within the bounds, which count as inside, else 0. Linear in dy, and its own adjoint.
Tensor clamp_backward(const Tensor& dy, const Tensor& x, const ClampOptions& bounds) {
  const Call call("clamp_backward", {dy, x});
  const Tensor dx = ops::binary_result("clamp_backward", dy, x, promote(dy.dtype(), x.dtype()));
  ops::map_into<ops::Floating>("clamp_backward", dx.dtype(), dx, std::array{dy, x},
                               ClampBackward{{bounds.min, bounds.max}});
  return call.result(
      dx, grad_of(dy, [x = saved(x), bounds](const Tensor& ddx) { return clamp_backward(ddx, *x, bounds); }));
}

void clamp_into(const Tensor& out, const Tensor& x, ClampOptions bounds) {
  ops::map_into<ops::Numbers>("clamp", clamp_dtype("clamp", x, bounds), out, std::array{x},
                              Clamp{{bounds.min, bounds.max}});
}

Attributes traced_bounds(const ClampOptions& bounds) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {{"min", bounds.min.value_or(-infinity)}, {"max", bounds.max.value_or(infinity)}};
}

void lerp_into(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& weight) {
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  ops::map_into<ops::Floating>("lerp", ops::floating_result(dtype), out, std::array{a, b, weight}, Lerp{});
}

}  // namespace

Tensor atan2(const Tensor& y, const Tensor& x) { return pointwise("atan2", y, x, Atan2{}); }
Tensor logaddexp(const Tensor& a, const Tensor& b) { return pointwise("logaddexp", a, b, LogAddExp{}); }
Tensor hypot(const Tensor& a, const Tensor& b) { return pointwise("hypot", a, b, Hypot{}); }

Tensor maximum(const Tensor& a, const Tensor& b) { return ordered("maximum", a, b, Maximum{}); }
Tensor minimum(const Tensor& a, const Tensor& b) { return ordered("minimum", a, b, Minimum{}); }
Tensor maximum(const Tensor& a, Number b) { return maximum(a, number_like(b, a)); }
Tensor minimum(const Tensor& a, Number b) { return minimum(a, number_like(b, a)); }

Tensor clamp(const Tensor& x, ClampOptions bounds) {
  const Call call("clamp", {x}, [&] { return traced_bounds(bounds); });
  const Tensor y = ops::unary_result(x, clamp_dtype("clamp", x, bounds));
  clamp_into(y, x, bounds);
  return call.result(
      y, grad_of(x, [x = saved(x), bounds](const Tensor& dy) { return clamp_backward(dy, *x, bounds); }));
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const Call call("lerp", {a, b, weight});
  const Shape shape = broadcast(broadcast(a.shape(), b.shape(), "lerp"), weight.shape(), "lerp");
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  const Tensor y = empty_as(std::array{a, b, weight}, shape, ops::floating_result(dtype));
  lerp_into(y, a, b, weight);
  return call.result(
      y, grad_of(a, [w = saved(weight)](const Tensor& dy) { return dy * (1 - widened(*w)); }),
      grad_of(b, [w = saved(weight)](const Tensor& dy) { return dy * *w; }),
      grad_of(weight, [a = saved(a), b = saved(b)](const Tensor& dy) { return dy * (widened(*b) - *a); }));
}

Tensor lerp(const Tensor& a, const Tensor& b, Number weight) {
  return lerp(a, b, number_like(weight.to<double>(), a, "lerp"));
}

const Tensor& clamp_(const Tensor& x, ClampOptions bounds) {
  for (const auto& bound : {bounds.min, bounds.max})
    check<DTypeError>(!bound || promote_with_number(x.dtype(), *bound) == x.dtype(),
                      "clamp_: a floating bound gives a floating result, which a tensor of {} cannot hold; "
                      "convert it with to(float32)",
                      x.dtype());
  const Call call("clamp", {x}, [&] { return traced_bounds(bounds); });
  if (changes_tape(x))
    replace_in_place("clamp_", x, [&](const Tensor& before) { return clamp(before, bounds); });
  else
    clamp_into(x, x, bounds);
  return call.gives(x);
}

const Tensor& lerp_(const Tensor& x, const Tensor& b, const Tensor& weight) {
  check<DTypeError>(is_floating(x.dtype()), "lerp_: needs a floating type, got {}", x.dtype());
  const Call call("lerp", {x, b, weight});
  if (changes_tape(x, {b, weight}))
    replace_in_place("lerp_", x, [&](const Tensor& before) { return lerp(before, b, weight).to(x.dtype()); });
  else
    lerp_into(x, x, b, weight);
  return call.gives(x);
}

const Tensor& lerp_(const Tensor& x, const Tensor& b, Number weight) {
  return lerp_(x, b, number_like(weight.to<double>(), x, "lerp_"));
}

}  // namespace pleat
