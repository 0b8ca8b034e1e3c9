// Private header: not installed.
#pragma once

#include "pleat/ops/conv/cpu/gather.h"

/// The kernels of `direct` convolutions. Each has a function that gives the bytes it needs beside operands
/// and result. `bias` may be null.

namespace pleat::ops {

/// y[row, k] = bias[k] + the sum over the gather's taps and source channels, for all its pixels. For result
/// channels enough to fill vectors.
template <class T>
void multiply_panels(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                     T* y);
template <class T>
int64_t panels_workspace(const Gather& gather);

/// The same for few result channels, which would leave most lanes of a panel's vectors idle.
template <class T>
void multiply_few(const Gather& gather, const T* source, const GatherWeights<T>& weights, const T* bias,
                  T* y);
template <class T>
int64_t few_workspace(const Gather& gather);
/// Whether multiply_few takes less work than panels: adding the lanes counts as much as three products.
template <class T>
bool few_channels_suit(const Gather& gather);

/// dw [K, taps, C/g] from dy and x.
template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw);
int64_t direct_weight_workspace(const ConvProblem& p);

/// Depthwise convolution: every channel has its own kernel. Loops run along the channels,
/// which lie side by side; weights are [taps in the gather's order][C].
inline bool is_depthwise(const ConvProblem& p) {
  return p.groups > 1 && p.groups == p.in_channels && p.groups == p.out_channels;
}

/// y[pixel, c] = bias[c] + sum over taps of source[pixel + tap, c] * weights[tap, c].
template <class T>
void depthwise_gather(const Gather& gather, const T* source, const T* weights, const T* bias, T* y);

/// dw[tap, c] = sum over pixels of x[pixel + tap, c] * dy[pixel, c], for a forward gather.
template <class T>
void depthwise_weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw);

}  // namespace pleat::ops
