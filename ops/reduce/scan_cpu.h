// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/reduce/lines.h"

/// Scans on the CPU, along lines in plain arrays that lie alike; of floating types in float64.

namespace pleat::ops {

/// y[i] = x[0] + ... + x[i], or their product. T is float, double or int64.
template <class T>
void scan_on_cpu(const Lines& lines, bool reverse, Plus, const T* x, T* y);
template <class T>
void scan_on_cpu(const Lines& lines, bool reverse, Times, const T* x, T* y);

/// linear_scan (scan.h). T is float or double.
template <class T>
void recur_on_cpu(const Lines& lines, bool reverse, const T* factors, const T* terms, T* y);

}  // namespace pleat::ops
