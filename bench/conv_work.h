#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pleat/bench/record.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/options.h"

namespace pleat::bench {

inline const std::vector<std::pair<std::string, ops::ConvPass>> conv_passes = {
    {"forward", ops::ConvPass::forward},
    {"backward_input", ops::ConvPass::backward_input},
    {"backward_weight", ops::ConvPass::backward_weight}};

/// One pass of a convolution with operands to run it on: random normal numbers, all in the problem's type and
/// format (the weight scaled by 1/sqrt(products summed), so that results are of size 1).
class ConvWork {
 public:
  /// Throws OutOfMemoryError.
  ConvWork(const ops::ConvProblem& problem, ops::ConvPass pass);

  const ops::ConvProblem& problem() const { return call_.problem; }
  const ops::ConvCall& call() const { return call_; }
  /// What the pass moves at least: input, weight and output once each.
  double bytes() const;

  /// The pass as a user calls it, by an implementation ("direct", "cudnn:eng1_k2=3"; empty: Pleat's choice).
  Tensor run(const std::string& implementation) const;

  /// Names of the implementations for this device that support it: all but the reference, unless there is no
  /// other. `with_plans`: with each of their plans, where they have some.
  std::vector<std::string> supporting(bool with_plans = false) const;
  /// Why an implementation cannot compute it; empty when it can. Of a name that does not exist here, too.
  std::string unsupported(const std::string& implementation) const;
  /// Names of its plans, its own choice first.
  std::vector<std::string> plans(const std::string& implementation) const;
  /// Adds to a record: the operations that count (not those on padding) with their rates; workspace_bytes;
  /// the plan that ran; whether it is what Pleat chooses; solved_as, the problem as the implementation solves
  /// it.
  void describe(const std::string& implementation, Record& record) const;

  /// The result in float64, of the same operands, on the CPU; computed by `exact_implementation`. Throws
  /// OutOfMemoryError.
  Tensor exact() const;
  /// "reference" (the formula) while that takes a second or two, else "unfold".
  std::string exact_implementation() const;

 private:
  /// "name:plan" of an implementation that has plans, its own choice where none is named; else the name.
  std::string with_plan(const std::string& name) const;
  ConvOptions options(const std::string& implementation) const;

  ops::ConvProblem requested_;
  ops::ConvCall call_;  ///< with the operands
};

}  // namespace pleat::bench
