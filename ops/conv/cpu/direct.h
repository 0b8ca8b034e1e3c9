// Private header: not installed.
#pragma once

#include <functional>

#include "pleat/ops/conv/cpu/channel_sums.h"
#include "pleat/ops/conv/cpu/gather.h"

/// The kernels of `direct` convolutions. Each has a function that gives the memory it needs beside operands
/// and result. Those of a gather pack the weights and leave the rest as tasks. `bias` may be null.

namespace pleat::ops {

/// Tasks 0 ... count-1 of a gather, for any threads in any order.
struct GatherTasks {
  int64_t count;
  std::function<void(int64_t)> run;
  int64_t parts = 0;  ///< of their sums
};

/// Some channels of rows of a result: in their place, or one after the other in a stage, from which they are
/// then copied.
template <class T>
struct RowValues {
  T* first;
  int64_t pitch;
  bool staged;
};

/// Where tasks leave sums of what they write, if they are to: parts from `first` on, of lanes that are
/// channels. They are prepared when the tasks begin.
template <class T>
struct PartSums {
  ChannelSums<T>* sums = nullptr;
  int64_t first = 0;

  /// Adds some channels of rows of the result, which are `pitch` elements apart.
  void add(int64_t part, int64_t channel, int64_t channels, const RowValues<T>& values, const int64_t* rows,
           int64_t pitch, int64_t count) const {
    sums->add(
        first + part, channel, channel, channels, count,
        [&](int64_t i) { return values.first + (values.staged ? i : rows[i]) * values.pitch; },
        [&](int64_t i) { return rows[i] * pitch + channel; });
  }
};

/// Rows whose sums are added at a time: what tasks have written of them is still in the cache.
inline constexpr std::size_t rows_summed = 64;

/// Bytes that all tasks share, and that each takes while it runs.
struct GatherMemory {
  int64_t weights;
  int64_t buffer;
};

/// y[row, k] = bias[k] + the sum over the gather's taps and source channels, for all its pixels. For result
/// channels enough to fill vectors.
template <class T>
GatherTasks multiply_panels(const Gather& gather, const T* source, const GatherWeights<T>& weights,
                            const T* bias, T* y, const PartSums<T>& sums);
template <class T>
GatherMemory panels_memory(const Gather& gather);

/// The same for few result channels, which would leave most lanes of a panel's vectors idle.
template <class T>
GatherTasks multiply_few(const Gather& gather, const T* source, const GatherWeights<T>& weights,
                         const T* bias, T* y);
template <class T>
GatherMemory few_memory(const Gather& gather);
/// Result channels that multiply_few computes, at most.
inline constexpr int64_t most_few_channels = 8;
/// Whether multiply_few takes less work than panels: adding the lanes counts as much as three products, and
/// panels of few channels have vectors of half the size or less, in half the time.
template <class T>
bool few_channels_suit(const Gather& gather);
/// What a product of several taps then costs beside one of panels.
template <class T>
double few_channels_cost(const Gather& gather);

/// The same for groups of few channels, depthwise convolution among them: vectors lie along the channels of
/// all groups.
template <class T>
GatherTasks multiply_lanes(const Gather& gather, const T* source, const GatherWeights<T>& weights,
                           const T* bias, T* y, const PartSums<T>& sums);
template <class T>
GatherMemory lanes_memory(const Gather& gather);
/// Whether a group has so few channels that multiply_lanes takes less work than a product for each group.
inline bool lanes_suit(const Gather& gather) {
  return gather.groups > 1 &&
         (gather.source_channels == 1 || (gather.result_channels <= 2 && gather.source_channels <= 8));
}

/// The same for groups of 2, 4 or 8 channels on both sides, in whole vectors of groups.
template <class T>
GatherTasks multiply_groups(const Gather& gather, const T* source, const GatherWeights<T>& weights,
                            const T* bias, T* y);
template <class T>
GatherMemory groups_memory(const Gather& gather);
template <class T>
bool groups_suit(const Gather& gather);

/// dw [K, taps, C/g] from dy and x.
template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw);
int64_t direct_weight_workspace(const ConvProblem& p);

/// Its part for groups of few channels. `gather` is the forward pass's.
template <class T>
void lanes_weight_gradient(const Gather& gather, const T* dy, const T* x, T* dw);
template <class T>
int64_t lanes_weight_workspace(const Gather& gather);
inline bool lanes_suit_weight(const Gather& gather) {
  return gather.groups > 1 &&
         (gather.source_channels == 1 || gather.source_channels * gather.result_channels <= 16);
}

/// dw [channels, depth] from chunks of sums [depth, leading], `chunk_size` elements apart, added in their
/// order.
template <class T>
void sum_transposed(const T* sums, int64_t chunks, int64_t chunk_size, int64_t depth, int64_t channels,
                    int64_t leading, T* dw);

}  // namespace pleat::ops
