#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Raw comparisons and tests, element by element, broadcasting; the results are bool.
/// Tensors are compared in their promoted type (core/tensor/dtype.h). A plain number is compared with
/// integers exactly (uint8 elements are never below -1 nor equal to 255.5), with floating elements after
/// rounding to their type. NaN is unequal to everything. All throw ShapeError when shapes do not broadcast.

namespace pleat {

struct AllcloseOptions {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;  ///< whether NaN is close to NaN
};

}  // namespace pleat

namespace pleat::ops {

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

}  // namespace pleat::ops
