// Private header: not installed.
#pragma once

#include <cstdint>

/// Group normalisation on the CPU of rows whose groups are neighbours. Layer norm is the one whose elements
/// have a weight and a bias of their own. The results have the same bits for any number of
/// threads.

namespace pleat::ops {

/// A dense tensor [rows, columns], each row in `groups` groups of neighbours with a mean and an rstd each.
struct RowView {
  int64_t rows, columns, groups;

  int64_t group_size() const { return columns / groups; }
};

/// What is known of each group of each row, [rows, groups].
struct GroupStatistics {
  double* mean;
  double* variance;  ///< biased
  double* rstd;      ///< 1 / sqrt(variance + eps)
};

/// y = (x - mean) rstd weight + bias, a group at a time, which is read from memory once where it fits the
/// cache. weight, bias [columns / pixels] are for so many neighbours each.
template <class T>
void normalize_rows(const RowView& view, int64_t pixels, const T* x, const T* weight, const T* bias,
                    double eps, const GroupStatistics& statistics, T* y);

/// Gradients of that with one neighbour each, mean and rstd being those of x: dx, and dweight, dbias
/// [columns], unless they are null.
template <class T>
void normalize_rows_backward(const RowView& view, const T* dy, const T* x, const double* mean,
                             const double* rstd, const T* weight, T* dx, double* dweight, double* dbias);

}  // namespace pleat::ops
