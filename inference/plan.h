// Private header: not installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/onnx/trace.h"

namespace pleat::inference {

/// The calls of a trace as they are made again.
class Plan {
 public:
  /// Weights are of `shared`. Throws ValueError for a call that cannot be made again.
  Plan(const onnx::Trace& trace, bool measured, SharedBlocks& shared);

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  /// A line for each call.
  std::string describe() const;

 private:
  class Builder;
  struct Step {
    std::string text;
    std::function<void(std::vector<Tensor>& values)> run;
    std::vector<int> last_reads;  ///< values that no later step reads
  };

  std::vector<Tensor> constants_;  ///< by value; undefined where it is none, or read by no step
  std::vector<int> inputs_, outputs_;
  std::vector<Step> steps_;
};

}  // namespace pleat::inference
