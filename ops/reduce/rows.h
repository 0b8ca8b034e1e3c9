// Private header: not installed.
#pragma once

#include <cstdint>

/// What each of many rows comes to, of plain arrays of float or double. Rows that are short are best taken
/// several at a time: vectors of sums then become one vector of the rows' sums, with as many additions as one
/// row alone would need to end with.

namespace pleat::ops::reduction {

/// Rows from this length on lose nothing by being taken one by one, and with the elements at their end.
inline constexpr int64_t least_long_row = 256;

/// sums[r] of the n elements from x + r * step on, as SumStep adds them: float by fours, of which the sum is
/// rounded, and, unless the result is finite or where `exactly`, one by one.
template <class T>
void row_sums(double* sums, const T* x, int64_t step, int64_t rows, int64_t n, bool exactly = false);

/// The same of the products a[i] b[i], which are rounded to T. Rows follow each other.
template <class T>
void row_dots(double* sums, const T* a, const T* b, int64_t rows, int64_t n);

/// largest[r] of each row, and y[r * n + i] = exp(x[r * step + i] - exponent_shift(largest[r])) with its
/// sums.
template <class T>
void row_exponentials(T* y, T* largest, double* sums, const T* x, int64_t step, int64_t rows, int64_t n);

}  // namespace pleat::ops::reduction
