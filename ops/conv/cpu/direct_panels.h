// Private header: not installed.
#pragma once

#include "pleat/ops/conv/cpu/gather.h"

/// `direct` convolution (direct.cpp) where there are channels enough to fill vectors with those of the
/// result.

namespace pleat::ops {

/// y[row, k] = bias[k] + what the gather's taps and source channels give, for all its pixels. `bias` may be
/// null.
template <class T>
void multiply_panels(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                     T* y);

/// Bytes that it needs beside operands and result.
template <class T>
int64_t panels_workspace(const Gather& gather);

}  // namespace pleat::ops
