// Private header: not installed.
#pragma once

#include "pleat/ops/conv/cpu/gather.h"

/// `direct` convolution (direct.cpp) with few result channels, which would leave most lanes of a panel's
/// vectors idle.

namespace pleat::ops {

/// Whether it takes less work than panels: adding the lanes counts as much as three products.
template <class T>
bool few_channels_suit(const Gather& gather);

/// multiply_panels (direct_panels.h) for few result channels.
template <class T>
void multiply_few(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                  T* y);

/// Bytes that it needs beside operands and result.
template <class T>
int64_t few_workspace(const Gather& gather);

}  // namespace pleat::ops
