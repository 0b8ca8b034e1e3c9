#pragma once

#include "pleat/autograd/functions.h"
#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

/// Arithmetic, element by element; differentiable. Shapes broadcast, types are promoted
/// (core/tensor/dtype.h); a plain number is weak. All throw ShapeError when shapes do not broadcast and
/// DeviceError when devices differ.

namespace pleat {

Tensor add(const Tensor& a, Number b);
Tensor add(Number a, const Tensor& b);
Tensor subtract(const Tensor& a, const Tensor& b);  ///< a - b
Tensor subtract(const Tensor& a, Number b);
Tensor subtract(Number a, const Tensor& b);
Tensor multiply(const Tensor& a, Number b);
Tensor multiply(Number a, const Tensor& b);
/// a / b, true division: integers give float32.
Tensor divide(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, Number b);
Tensor divide(Number a, const Tensor& b);
Tensor negate(const Tensor& x);  ///< -x

/// x + value a b.
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);
/// x + value a / b.
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value = 1);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Number b) { return add(a, b); }
inline Tensor operator+(Number a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator-(const Tensor& a, Number b) { return subtract(a, b); }
inline Tensor operator-(Number a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator*(const Tensor& a, Number b) { return multiply(a, b); }
inline Tensor operator*(Number a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator/(const Tensor& a, Number b) { return divide(a, b); }
inline Tensor operator/(Number a, const Tensor& b) { return divide(a, b); }
inline Tensor operator-(const Tensor& x) { return negate(x); }

/// In place, keeping `x`'s shape and type (a floating operand cannot be added to integers: DTypeError).
/// They return `x`.
const Tensor& add_(const Tensor& x, Number other);
const Tensor& subtract_(const Tensor& x, const Tensor& other);
const Tensor& subtract_(const Tensor& x, Number other);
const Tensor& multiply_(const Tensor& x, const Tensor& other);
const Tensor& multiply_(const Tensor& x, Number other);
const Tensor& divide_(const Tensor& x, const Tensor& other);
const Tensor& divide_(const Tensor& x, Number other);

inline const Tensor& operator+=(const Tensor& x, const Tensor& other) { return add_(x, other); }
inline const Tensor& operator-=(const Tensor& x, const Tensor& other) { return subtract_(x, other); }
inline const Tensor& operator*=(const Tensor& x, const Tensor& other) { return multiply_(x, other); }
inline const Tensor& operator/=(const Tensor& x, const Tensor& other) { return divide_(x, other); }
inline const Tensor& operator+=(const Tensor& x, Number other) { return add_(x, other); }
inline const Tensor& operator-=(const Tensor& x, Number other) { return subtract_(x, other); }
inline const Tensor& operator*=(const Tensor& x, Number other) { return multiply_(x, other); }
inline const Tensor& operator/=(const Tensor& x, Number other) { return divide_(x, other); }

}  // namespace pleat
