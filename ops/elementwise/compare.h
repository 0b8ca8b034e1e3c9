#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Comparisons, tests and logic, element by element, broadcasting; the results are bool and have no
/// derivatives. Tensors are compared in their promoted type (core/tensor/dtype.h). A plain number is compared
/// with integers exactly (uint8 elements are never below -1 nor equal to 255.5), with floating elements after
/// rounding to their type. NaN is unequal to everything. All throw ShapeError when shapes do not broadcast.

namespace pleat {

struct AllcloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;  ///< whether NaN is close to NaN
};

Tensor equal(const Tensor& a, const Tensor& b);          ///< a == b
Tensor not_equal(const Tensor& a, const Tensor& b);      ///< a != b
Tensor less(const Tensor& a, const Tensor& b);           ///< a < b
Tensor less_equal(const Tensor& a, const Tensor& b);     ///< a <= b
Tensor greater(const Tensor& a, const Tensor& b);        ///< a > b
Tensor greater_equal(const Tensor& a, const Tensor& b);  ///< a >= b

/// A bool is compared with bool tensors only: DTypeError.
Tensor equal(const Tensor& a, Scalar b);
Tensor not_equal(const Tensor& a, Scalar b);
Tensor less(const Tensor& a, Number b);
Tensor less_equal(const Tensor& a, Number b);
Tensor greater(const Tensor& a, Number b);
Tensor greater_equal(const Tensor& a, Number b);
inline Tensor equal(Scalar a, const Tensor& b) { return equal(b, a); }
inline Tensor not_equal(Scalar a, const Tensor& b) { return not_equal(b, a); }
inline Tensor less(Number a, const Tensor& b) { return greater(b, a); }
inline Tensor less_equal(Number a, const Tensor& b) { return greater_equal(b, a); }
inline Tensor greater(Number a, const Tensor& b) { return less(b, a); }
inline Tensor greater_equal(Number a, const Tensor& b) { return less_equal(b, a); }

/// False everywhere for integers and bool, isfinite true.
Tensor isnan(const Tensor& x);     ///< whether x is NaN
Tensor isinf(const Tensor& x);     ///< whether x is infinite
Tensor isfinite(const Tensor& x);  ///< whether x is neither NaN nor infinite

/// Whether the shapes are the same and all elements equal, whatever the types.
bool array_equal(const Tensor& a, const Tensor& b);

/// Whether |a - b| <= atol + rtol |b|, computed in float64; infinities are close to themselves. Throws
/// ValueError for a negative tolerance.
Tensor isclose(const Tensor& a, const Tensor& b, AllcloseOptions options = {});
/// Whether |a - b| <= atol + rtol |b| everywhere.
bool allclose(const Tensor& a, const Tensor& b, AllcloseOptions options = {});

/// Logic takes any type: an element is true when it is not 0 (NaN is true).
Tensor logical_and(const Tensor& a, const Tensor& b);  ///< a and b
Tensor logical_or(const Tensor& a, const Tensor& b);   ///< a or b, or both
Tensor logical_xor(const Tensor& a, const Tensor& b);  ///< a or b, not both
Tensor logical_not(const Tensor& x);                   ///< not x

/// The operators compare element by element and give a bool tensor; `array_equal` asks about the whole.
inline Tensor operator==(const Tensor& a, const Tensor& b) { return equal(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return not_equal(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }

inline Tensor operator==(const Tensor& a, Scalar b) { return equal(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return not_equal(a, b); }
inline Tensor operator<(const Tensor& a, Number b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, Number b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, Number b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, Number b) { return greater_equal(a, b); }

inline Tensor operator==(Scalar a, const Tensor& b) { return equal(a, b); }
inline Tensor operator!=(Scalar a, const Tensor& b) { return not_equal(a, b); }
inline Tensor operator<(Number a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(Number a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(Number a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(Number a, const Tensor& b) { return greater_equal(a, b); }

/// Both sides are always computed, as with any function.
inline Tensor operator&&(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
inline Tensor operator||(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
inline Tensor operator!(const Tensor& x) { return logical_not(x); }

}  // namespace pleat
