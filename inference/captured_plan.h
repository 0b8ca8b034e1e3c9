// Private header: not installed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "pleat/core/device/cuda.h"
#include "pleat/core/graph/cuda_graph.h"
#include "pleat/inference/plan.h"

namespace pleat::inference {

/// A plan on a GPU as one CUDA graph: a call copies its inputs to where the graph reads them, launches it,
/// and copies the results. Calls of several threads and streams come one after the other.
class CapturedPlan {
 public:
  /// For inputs like these, which are all on one GPU. Runs the plan once before. Throws Error for what cannot
  /// be captured (CudaGraph).
  CapturedPlan(const Plan& plan, const std::vector<Tensor>& examples);

  std::vector<Tensor> run(const std::vector<Tensor>& inputs);

 private:
  std::mutex mutex_;
  std::vector<Tensor> inputs_, outputs_;
  CudaGraph graph_;
  cuda::Event done_;  ///< the last call
};

}  // namespace pleat::inference
