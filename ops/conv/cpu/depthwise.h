// Private header: not installed.
#pragma once

#include "pleat/ops/conv/cpu/gather.h"

namespace pleat::ops {

/// Depthwise convolution: every channel has its own kernel and meets no other. Loops run along the channels,
/// which lie side by side; weights are [taps in the gather's order][C].

inline bool is_depthwise(const ConvProblem& p) {
  return p.groups > 1 && p.groups == p.in_channels && p.groups == p.out_channels;
}

/// y[pixel, c] = bias[c] + sum over taps of source[pixel + tap, c] * weights[tap, c]. `bias` may be null.
template <class T>
void depthwise_gather(const Gather& gather, const T* source, const T* weights, const T* bias, T* y);

/// dw[tap, c] = sum over pixels of x[pixel + tap, c] * dy[pixel, c], for a forward gather.
template <class T>
void depthwise_weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw);

}  // namespace pleat::ops
