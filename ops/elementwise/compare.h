#pragma once

#include "pleat/ops/elementwise/compare_kernels.h"
#include "pleat/ops/elementwise/logic.h"

/// Comparisons, tests and logic (ops/elementwise/compare_kernels.h, logic.h): bool tensors, which have no
/// derivatives.

namespace pleat {

using ops::allclose;
using ops::array_equal;
using ops::equal;
using ops::greater;
using ops::greater_equal;
using ops::isclose;
using ops::isfinite;
using ops::isinf;
using ops::isnan;
using ops::less;
using ops::less_equal;
using ops::logical_and;
using ops::logical_not;
using ops::logical_or;
using ops::logical_xor;
using ops::not_equal;

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
