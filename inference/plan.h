// Private header: not installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/inference/quantize.h"
#include "pleat/onnx/trace.h"

namespace pleat::inference {

/// The calls of a program (inference/fold.h) for one size of the batch as they are made again.
class Plan {
 public:
  /// Throws ValueError for a call that cannot be made again. `quantizer`: computes in int8; null: in float32.
  Plan(onnx::Trace trace, bool measured, SharedBlocks& shared, Quantizer* quantizer = nullptr);

  /// `observer` sees the values after each step.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Quantizer* observer = nullptr) const;
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
