// Private header: not installed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/onnx/trace.h"
#include "pleat/ops/matmul/frozen_linear.h"

namespace pleat::inference {

/// Packed weights that do not depend on a plan's shapes, by the ids of weight and bias.
using SharedLinears = std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const ops::FrozenLinear>>;

/// The calls of a trace as they are made again.
class Plan {
 public:
  /// Throws ValueError for a call that cannot be made again.
  Plan(const onnx::Trace& trace, bool measured, SharedLinears& linears);

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
