#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/options.h"

namespace pleat::bench {

/// One pass of a convolution with operands to run it on: random normal numbers, all in the problem's type and
/// format (the weight scaled by 1/sqrt(products summed), so that results are of size 1).
class ConvWork {
 public:
  /// Throws OutOfMemoryError.
  ConvWork(const ops::ConvProblem& problem, ops::ConvPass pass);

  const ops::ConvProblem& problem() const { return call_.problem; }
  ops::ConvPass pass() const { return call_.pass; }
  const ops::ConvCall& call() const { return call_; }

  /// The pass as a user calls it, by an implementation ("direct", "cudnn:eng1_k2=3"; empty: Pleat's choice).
  Tensor run(const std::string& implementation) const;

  /// Names of the implementations for this device that support it: all but the reference, unless there is no
  /// other.
  std::vector<std::string> supporting() const;
  /// Why an implementation cannot compute it; empty when it can. Of a name that does not exist here, too.
  std::string unsupported(const std::string& implementation) const;
  /// Names of its plans, its own choice first.
  std::vector<std::string> plans(const std::string& implementation) const;
  /// Bytes beside operands and result.
  int64_t workspace_bytes(const std::string& implementation) const;
  /// The problem as the implementation solves it: a 1x1 convolution as a matrix product ...
  std::string solved_as(const std::string& implementation) const;

  /// The result in float64, of the same operands, on the CPU; computed by `double_implementation`. Throws
  /// OutOfMemoryError.
  Tensor exact() const;
  /// What computes `exact`: "reference" (the formula) while that takes a second or two, else "unfold".
  std::string double_implementation() const;

 private:
  ConvOptions options(const std::string& implementation) const;
  ops::ConvCall make_call() const;

  ops::ConvProblem asked_;
  ops::ConvPass pass_;
  Tensor x_, w_, dy_, bias_;
  ops::ConvCall call_;
};

/// Products that count: those with elements of the input, not with padding. [FLOP] of one pass, a
/// multiply-add is two: 2 N K C/g times, for each dimension, the pairs of output and tap that meet the input.
double valid_flops(const ops::ConvProblem& problem);

/// Bytes that the pass moves at least: input, weight and output once each.
double least_bytes(const ops::ConvProblem& problem);

}  // namespace pleat::bench
