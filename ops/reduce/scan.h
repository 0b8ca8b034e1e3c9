#pragma once

#include "pleat/core/tensor/tensor.h"

/// Scans: running results along one dimension, accumulated in float64 for floating types. Where `reverse`,
/// they run from the last element to the first. All throw IndexError for a dimension out of range.

namespace pleat {

/// y[i] = x[0] + ... + x[i]. Integers and bool give int64.
Tensor cumsum(const Tensor& x, Integer dim, Flag reverse = false);
/// y[i] = x[0] ... x[i]. Integers and bool give int64. Its gradient is right also where factors are 0, and to
/// any order.
Tensor cumprod(const Tensor& x, Integer dim, Flag reverse = false);
/// x[i + 1] - x[i] along `dim`, `n` times over: each time one element less. Throws
/// ValueError for a negative n, DTypeError for bool.
Tensor diff(const Tensor& x, Integer n = 1, Integer dim = -1);

/// The linear recurrence y[i] = a[i] y[i-1] + b[i], y[-1] = 0; where `reverse`, y[i] = a[i+1] y[i+1] + b[i].
/// a[0] plays no part. Throws ShapeError unless a and b have one shape, DTypeError unless one floating type.
Tensor linear_scan(const Tensor& a, const Tensor& b, Integer dim, Flag reverse = false);

/// y[i] = x[i - by], and `fill` where there is no such element.
Tensor shifted(const Tensor& x, Integer dim, Integer by, Real fill);

}  // namespace pleat
