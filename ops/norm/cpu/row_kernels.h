// Private header: not installed.
#pragma once

#include <cstdint>

/// Group normalisation on the CPU of rows without spatial dimensions, which is what layer norm is: each
/// element of a row has a weight and a bias of its own. The results have the same bits for any number of
/// threads.

namespace pleat::ops {

/// A dense tensor [rows, columns], each row in `groups` groups of neighbours with a mean and an rstd each.
struct RowView {
  int64_t rows, columns, groups;

  int64_t group_size() const { return columns / groups; }
};

/// y = (x - mean) rstd weight + bias. mean, rstd [rows, groups]; weight, bias [columns].
template <class T>
void normalize_rows(const RowView& view, const T* x, const double* mean, const double* rstd, const T* weight,
                    const T* bias, T* y);

/// Gradients of that, mean and rstd being those of x: dx, unless it is null, and dweight, dbias [columns].
template <class T>
void normalize_rows_backward(const RowView& view, const T* dy, const T* x, const double* mean,
                             const double* rstd, const T* weight, T* dx, double* dweight, double* dbias);

}  // namespace pleat::ops
