// Private header: not installed.
#pragma once

#include <memory>
#include <string>

#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {

class NormalizedBy;

/// One pass with its operands, checked: what any implementation that supports it can be given to compute.
struct ConvCall {
  const char* op;
  ConvPass pass;
  ConvProblem problem;
  std::string requested;  ///< the implementation that the options name for this pass; may be empty
  Tensor x, w, dy, bias;  ///< those that the pass reads; the others are undefined
  /// Whether the result of a forward is to have a note of its Moments, as far as the implementation makes
  /// them on the way.
  bool moments = false;
  /// How x was made; not null: the result of a backward_input is to have a note of its GradientSums likewise.
  std::shared_ptr<const NormalizedBy> normalized_by = {};

  /// Whether there is nothing to compute.
  bool is_empty() const;
  /// The result, in the caller's type and format.
  Tensor run(const ConvImplementation& implementation) const;
};

ConvCall forward_call(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options);
ConvCall backward_input_call(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                             const ConvOptions& options);
ConvCall backward_weight_call(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                              const ConvOptions& options);

/// The problem as an implementation sees it: in its type and layout, reduced where the layout allows.
ConvProblem solved_problem(const ConvProblem& problem, const ConvImplementation& implementation);

/// The implementation for a call: what it or the policy names, else with the policy's `benchmark` the
/// fastest, else the first that supports it. Throws ValueError as choose_conv does.
std::shared_ptr<const ConvImplementation> choose(const ConvCall& call);

}  // namespace pleat::ops
