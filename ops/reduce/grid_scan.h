// Private header: not installed.
#pragma once

#include "pleat/ops/reduce/lines.h"

/// Scans over the grid of the tensors' device, in float64 or int64. All tensors are dense and of the same
/// strides; `lines` are theirs; y may be of any type.

namespace pleat::ops {

enum class RunningKind { sum, product };
void grid_running(const char* op, RunningKind kind, const Tensor& y, const Tensor& x, const Lines& lines,
                  bool reverse);

void grid_linear_scan(const char* op, const Tensor& y, const Tensor& a, const Tensor& b, const Lines& lines,
                      bool reverse);

}  // namespace pleat::ops
