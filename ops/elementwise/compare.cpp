// Host and device.
#include "pleat/ops/elementwise/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pleat/autograd/call.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/fits.h"
#include "pleat/ops/elementwise/kernels.h"

namespace pleat {
namespace {

struct Equal : ops::MemoryBound {
  static constexpr const char* name = "equal";

  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};

struct Unequal : ops::MemoryBound {
  static constexpr const char* name = "not_equal";

  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a != b;
  }
};

struct Less : ops::MemoryBound {
  static constexpr const char* name = "less";

  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};

struct AtMost : ops::MemoryBound {
  static constexpr const char* name = "less_equal";

  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct IsNan {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return a != a;
  }
};

struct IsInfinite {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return std::abs(a) == std::numeric_limits<T>::infinity();
  }
};

struct IsFinite {
  template <class T>
  PLEAT_HOST_DEVICE bool operator()(T a) const {
    return std::abs(a) < std::numeric_limits<T>::infinity();
  }
};

struct Close {
  double rtol, atol;
  bool equal_nan;

  PLEAT_HOST_DEVICE bool operator()(double a, double b) const {
    const double size = std::abs(b);
    const bool near = std::abs(a - b) <= atol + rtol * size && size < std::numeric_limits<double>::infinity();
    return a == b || near || (equal_nan && a != a && b != b);
  }
};

struct And {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a & b) != 0; }
};
struct Or {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return (a | b) != 0; }
};
struct Xor {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a, uint8_t b) const { return a != b; }
};
struct Not {
  PLEAT_HOST_DEVICE bool operator()(uint8_t a) const { return a == 0; }
};

void check_place(const char* op, const Tensor& place, const Tensor& other) {
  check<ShapeError>(!place.impl().is_place_among_all || other.numel() == 1,
                    "{}: one place among all elements, which argmax and argmin give without a dimension, is "
                    "compared with {}; argmax(x, 1) gives one for each row",
                    op, other);
}

template <class F>
Tensor compare(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const RecordOp range(op, a, b);
  const Call call(f.name, {a, b});
  check_place(op, a, b);
  check_place(op, b, a);
  const Tensor out = ops::binary_result(op, a, b, boolean);
  ops::map_into<ops::Ordered, ops::Truth>(op, promote(a.dtype(), b.dtype()), out, std::array{a, b}, f);
  return call.gives(out);
}

/// A number as a tensor that compares with `like`'s elements: in their type where that can hold it, which is
/// fastest, else in one that can hold both.
Tensor comparable(const char* op, Scalar number, const Tensor& like) {
  check<DTypeError>(
      number.kind() != boolean || like.dtype() == boolean,
      "{}: a bool is compared with bool tensors, got {}; write x == 1, or x != 0 for what is true", op, like);
  DType dtype = like.dtype() == boolean ? uint8 : like.dtype();
  if (is_floating(dtype) ? !fits(number, dtype) : number.kind() == float64)
    dtype = float64;
  else if (!fits(number, dtype))
    dtype = int64;
  return full({}, number, {.dtype = dtype, .device = like.device()});
}

template <class F>
Tensor test_floating(const char* op, const Tensor& x, bool otherwise, const F& f) {
  const Call call(op, {x});
  const Tensor out = ops::unary_result(x, boolean);
  if (!is_floating(x.dtype()))
    ops::fill(out, otherwise);
  else
    ops::map_into<ops::Floating, ops::Truth>(op, x.dtype(), out, std::array{x}, f);
  return call.gives(out);
}

template <class F>
Tensor logical(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const Call call(op, {a, b});
  const Tensor out = ops::binary_result(op, a, b, boolean);
  ops::map_into<ops::Truths>(op, boolean, out, std::array{a, b}, f);
  return call.gives(out);
}

Tensor close(const char* op, const Tensor& a, const Tensor& b, AllcloseOptions options) {
  const RecordOp range(op, a, b);
  check<ValueError>(options.rtol >= 0 && options.atol >= 0,
                    "{}: the tolerances must not be negative, got rtol = {} and atol = {}", op, options.rtol,
                    options.atol);
  const Tensor result = ops::binary_result(op, a, b, boolean);
  ops::map_into<ops::Doubles, ops::Truth>(op, float64, result, std::array{a, b},
                                          Close{options.rtol, options.atol, options.equal_nan});
  return result;
}

/// Whether every element of a new (so dense) bool tensor is true.
bool all_true(const Tensor& fresh) {
  const Tensor dense = ops::to_device(fresh, Device());
  const bool* values = dense.data<bool>();
  return std::find(values, values + dense.numel(), false) == values + dense.numel();
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return compare("equal", a, b, Equal{}); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return compare("not_equal", a, b, Unequal{}); }
Tensor less(const Tensor& a, const Tensor& b) { return compare("less", a, b, Less{}); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return compare("less_equal", a, b, AtMost{}); }
Tensor greater(const Tensor& a, const Tensor& b) { return compare("greater", b, a, Less{}); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return compare("greater_equal", b, a, AtMost{}); }

Tensor equal(const Tensor& a, Scalar b) { return equal(a, comparable("equal", b, a)); }
Tensor not_equal(const Tensor& a, Scalar b) { return not_equal(a, comparable("not_equal", b, a)); }
Tensor less(const Tensor& a, Number b) { return less(a, comparable("less", b, a)); }
Tensor less_equal(const Tensor& a, Number b) { return less_equal(a, comparable("less_equal", b, a)); }
Tensor greater(const Tensor& a, Number b) { return greater(a, comparable("greater", b, a)); }
Tensor greater_equal(const Tensor& a, Number b) {
  return greater_equal(a, comparable("greater_equal", b, a));
}

Tensor isnan(const Tensor& x) { return test_floating("isnan", x, false, IsNan{}); }
Tensor isinf(const Tensor& x) { return test_floating("isinf", x, false, IsInfinite{}); }
Tensor isfinite(const Tensor& x) { return test_floating("isfinite", x, true, IsFinite{}); }

bool array_equal(const Tensor& a, const Tensor& b) {
  const RecordOp range("array_equal", a, b);
  return a.shape() == b.shape() && all_true(equal(a, b));
}

Tensor isclose(const Tensor& a, const Tensor& b, AllcloseOptions options) {
  const Call call("isclose", {a, b});
  return call.gives(close("isclose", a, b, options));
}
bool allclose(const Tensor& a, const Tensor& b, AllcloseOptions options) {
  return all_true(close("allclose", a, b, options));
}

Tensor logical_and(const Tensor& a, const Tensor& b) { return logical("logical_and", a, b, And{}); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return logical("logical_or", a, b, Or{}); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return logical("logical_xor", a, b, Xor{}); }
Tensor logical_not(const Tensor& x) {
  const Call call("logical_not", {x});
  const Tensor out = ops::unary_result(x, boolean);
  ops::map_into<ops::Truths>("logical_not", boolean, out, std::array{x}, Not{});
  return call.gives(out);
}

}  // namespace pleat
