// Private header: not installed.
#pragma once

#include <functional>

#include "pleat/ops/conv/cpu/channel_sums.h"
#include "pleat/ops/conv/cpu/gather.h"
#include "pleat/ops/matmul/result_finish.h"

/// The kernels of `direct` convolutions, of which the first that suits a gather computes it:
///   groups        groups of 2, 4 or 8 channels on both sides: vectors are channels of some whole groups;
///   lines         depthwise, of fewer channels than lanes: vectors lie along a line's pixels and channels;
///   lanes         depthwise, and groups of few channels: a vector's lanes are channels of so many groups;
///   few channels  up to 8 result channels, which would leave most lanes idle: vectors lie along the source's
///                 channels, and their lanes are added up in the end;
///   panels        all others: vectors lie along the result's channels, of which one or two vectors, with
///                 the weights for them, are a panel.

namespace pleat::ops {

/// Some channels of rows of a result: in their place, or one after the other in a stage, from which they are
/// then copied.
template <class T>
struct RowValues {
  T* first;
  int64_t pitch;
  bool staged;
};

/// What tasks do with rows of the result as soon as these are complete.
template <class T>
struct Completion {
  /// Sums of them, if they are to: parts from `first_part` on, of lanes that are channels. They are prepared
  /// when the tasks begin.
  ChannelSums<T>* sums = nullptr;
  int64_t first_part = 0;
  RowFinish<T> finish = {};

  explicit operator bool() const { return sums != nullptr || finish; }

  void add_sums(int64_t part, int64_t channel, int64_t channels, const RowValues<T>& values,
                const int64_t* rows, int64_t pitch, int64_t count) const {
    if (sums == nullptr) return;
    sums->add(
        first_part + part, channel, channel, channels, count,
        [&](int64_t i) { return values.first + (values.staged ? i : rows[i]) * values.pitch; },
        [&](int64_t i) { return rows[i] * pitch + channel; });
  }
  /// `values`, here and above: some channels of rows of the result, which are `pitch` elements apart.
  void finish_rows(int64_t channel, int64_t channels, const RowValues<T>& values, const int64_t* rows,
                   int64_t pitch, int64_t count) const {
    for (int64_t i = 0; finish && i < count; ++i)
      finish.run(values.first + (values.staged ? i : rows[i]) * values.pitch, rows[i] * pitch + channel,
                 channels);
  }
};

/// Rows that are completed at a time: what tasks have written of them is still in the cache.
inline constexpr std::size_t rows_completed = 64;

/// Bytes that all tasks share, and that each takes while it runs.
struct GatherMemory {
  int64_t weights;
  int64_t buffer;
};

/// What y[row, k] = bias[k] + the sum over a gather's taps and source channels reads and writes beside the
/// weights; bias may be null.
template <class T>
struct GatherOperands {
  const T* source;
  const T* bias;
  T* y;
  Completion<T> completion;
};

/// Tasks 0 ... count-1 of a gather and its weights, for any operands and threads, in any order.
template <class T>
struct GatherTasks {
  int64_t count;
  std::function<void(int64_t task, const GatherOperands<T>&)> run;
  int64_t parts = 0;  ///< of their sums
};

template <class T>
struct DirectKernel {
  bool (*suits)(const Gather&);
  /// Packs the weights, which the tasks keep.
  GatherTasks<T> (*tasks)(const Gather&, const GatherWeights<T>&);
  GatherMemory (*memory)(const Gather&);  ///< beside operands and result
  bool makes_sums = false;
};
// Each in its file.
template <class T>
DirectKernel<T> groups_kernel();
template <class T>
DirectKernel<T> lines_kernel();
template <class T>
DirectKernel<T> lanes_kernel();
template <class T>
DirectKernel<T> few_channels_kernel();
template <class T>
DirectKernel<T> panels_kernel();

/// Result channels that the kernel for few computes, at most.
inline constexpr int64_t most_few_channels = 8;
/// What a product of it costs beside one of panels; 1 where it does not suit.
template <class T>
double few_channels_cost(const Gather& gather);

/// dw [K, taps, C/g] from dy and x.
template <class T>
void direct_backward_weight(const ConvProblem& p, const T* dy, const T* x, T* dw);
int64_t direct_weight_workspace(const ConvProblem& p);

/// Its kernels beside products, for gathers of the forward pass, each in the file of its name.
template <class T>
struct DirectWeightKernel {
  bool (*suits)(const Gather&);
  void (*gradient)(const Gather&, const T* dy, const T* x, T* dw);
  int64_t (*workspace)(const Gather&);
};
template <class T>
DirectWeightKernel<T> lines_weight_kernel();
template <class T>
DirectWeightKernel<T> lanes_weight_kernel();

/// dw [channels, depth] from chunks of sums [depth, leading], `chunk_size` elements apart, added in their
/// order.
template <class T>
void sum_transposed(const T* sums, int64_t chunks, int64_t chunk_size, int64_t depth, int64_t channels,
                    int64_t leading, T* dw);

}  // namespace pleat::ops
