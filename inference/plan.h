// Private header: not installed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/tensor/shared_blocks.h"
#include "pleat/inference/quantize.h"
#include "pleat/onnx/trace.h"
#include "pleat/ops/conv/frozen_conv.h"

namespace pleat::inference {

struct PlanOptions {
  SharedBlocks& shared;
  Quantizer* quantizer = nullptr;  ///< computes in int8; null: in float32
  bool verified = true;            ///< of values that are as the trace says; else the first run checks them
  bool measured = false;           ///< convolutions for which there is no choice
  std::vector<ops::FrozenConv::Choice> choices = {};  ///< in their order
};

/// The calls of a program (inference/fold.h) for one size of the batch as they are made again.
class Plan {
 public:
  /// Throws ValueError for a call that cannot be made again.
  Plan(onnx::Trace trace, const PlanOptions& options);

  /// `observer` sees the values after each step. Throws ValueError where the trace was none of its calls.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, Quantizer* observer = nullptr) const;
  /// A line for each call.
  std::string describe() const;
  /// Of its convolutions.
  const std::vector<ops::FrozenConv::Choice>& choices() const { return choices_; }

 private:
  class Builder;
  struct Step {
    std::string text;
    std::function<void(std::vector<Tensor>& values)> run;
    std::vector<int> writes;
    std::vector<int> last_reads;  ///< values that no later step reads
  };

  std::vector<Tensor> constants_;  ///< by value; undefined where it is none, or read by no step
  std::vector<int> inputs_, outputs_;
  std::vector<Step> steps_;
  std::vector<ops::FrozenConv::Choice> choices_;
  std::vector<std::pair<Shape, DType>> expected_;  ///< of each value
  mutable std::atomic<bool> verified_;
};

}  // namespace pleat::inference
