// Private header: not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pleat/ops/conv/cuda/cudnn_descriptor.h"
#include "pleat/ops/conv/implementation.h"

/// cuDNN through its graph interface: a graph of one convolution (and the addition of a bias), engines
/// proposed by cuDNN's heuristics, and those of them whose properties and workspace are allowed become plans.

namespace pleat::ops {

/// What a plan depends on: the key of every cache, compared whole.
struct CudnnKey {
  ConvProblem problem;  ///< reduced; all tensors lie dense in its `format`
  ConvPass pass;
  bool deterministic;
  int64_t workspace_limit;  ///< bytes
  std::string plan;         ///< its name; empty: cuDNN's own choice

  bool operator==(const CudnnKey&) const = default;

  /// "forward pass of n8 c3 ... float32 channels_last": for messages.
  std::string describe() const;
};

struct CudnnPlan {
  CudnnDescriptor descriptor;
  std::string name;  ///< engine and knobs: "eng37_k2=5", with "+add" where the bias is left to another kernel
  int64_t workspace = 0;  ///< bytes
  bool adds_bias = false;
};

/// Ids of the tensors in a plan's graph.
constexpr int64_t cudnn_input_id = 'x';
constexpr int64_t cudnn_weight_id = 'w';
constexpr int64_t cudnn_bias_id = 'b';
constexpr int64_t cudnn_output_id = 'y';

/// The plan of a key, made at its first use by this thread: plans are bound to the handle, which is the
/// thread's. The last 1,024 are kept. Throws DeviceError when there is none.
CudnnPlan& cudnn_plan(const CudnnKey& key, cudnnHandle_t handle);

/// What plans are made for, as it is told to graphs, heuristics and plans: the thread's handle, or for a test
/// the description of a GPU that is not there.
struct CudnnTarget {
  std::function<void(CudnnDescriptor&)> graph, heuristics, plan;
};
CudnnTarget cudnn_target(cudnnHandle_t handle);

/// Names of all plans that a key without a name can have, cuDNN's own choice first; of one with a name that
/// plan's, if it exists.
std::vector<std::string> cudnn_plan_names(const CudnnKey& key, const CudnnTarget& target);

/// Whether a problem has three dimensions for cuDNN.
bool has_depth(const ConvProblem& problem);

/// Why a release of cuDNN (91900: 9.19.0) is not to be trusted with a problem, as it is reduced; empty where
/// it is. In three dimensions 9.8 to 9.10 gave wrong results for bfloat16, and 9.10.2 to 9.15 for TF32
/// (reports on PyTorch 2.9, which gave such convolutions to other kernels).
std::string known_fault(const ConvProblem& problem, int version);

/// Whether the depth of a contiguous problem may count as its batch: kernel 1, stride 1, no padding, and one
/// image only, so that there is one distance from each slice to the next.
bool depth_is_batch(const ConvProblem& problem);

}  // namespace pleat::ops
