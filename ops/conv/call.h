// Private header: not installed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {

/// "conv1d", "conv2d" or "conv3d", by the shape of the weight. Throws ShapeError for another rank.
const char* conv_name(const Shape& weight);

/// One pass with its operands, checked: what an implementation is chosen for, and computes.
struct ConvCall {
  const char* op = nullptr;
  ConvPass pass = ConvPass::forward;
  ConvProblem problem = {};
  std::string requested = {};  ///< the implementation that the options or the policy name; may be empty
  Tensor x = {}, w = {}, dy = {}, bias = {};  ///< those that the pass reads; the others are undefined
  ConvFusion* fusion = nullptr;               ///< what is computed beside it, if anything

  /// Whether there is nothing to compute.
  bool is_empty() const;
  /// The one for it by this name: Implementations::get.
  std::shared_ptr<const ConvImplementation> implementation(const std::string& name) const;
  /// The result, in the caller's type and format.
  Tensor run(const ConvImplementation& implementation) const;
};

ConvCall forward_call(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options);
ConvCall backward_input_call(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                             const ConvOptions& options);
ConvCall backward_weight_call(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                              const ConvOptions& options);
/// The backward_input that a transposed convolution of a batch is, to whose result its bias is added. Nothing
/// where zeros surround that result. Throws as conv_transpose1d ... 3d.
std::optional<ConvCall> transposed_call(const Tensor& x, const Tensor& w, const Tensor& bias,
                                        const ConvTransposeOptions& options);

/// The problem as an implementation sees it: in its type and layout, reduced where the layout allows.
ConvProblem solved_problem(const ConvProblem& problem, const ConvImplementation& implementation);

/// The tensors of a problem as an implementation takes them: in its type and layout, with five dimensions.
struct ConvOperands {
  ConvOperands(const ConvProblem& given, const ConvImplementation& implementation);

  Tensor input(const Tensor& t) const;
  Tensor weight(const Tensor& t) const;
  /// Of a weight that is kept in `shared`.
  Tensor weight(const Tensor& t, SharedBlocks& shared) const;
  Tensor output(const Tensor& t) const;
  Tensor bias(const Tensor& t) const;
  /// In its own sizes, dense.
  Tensor laid_out(const Tensor& t) const;
  /// A result to be written, in the shape of the given problem.
  Tensor make(const Shape& shape) const;

  ConvProblem problem;  ///< solved_problem
  ConvLayout layout;
  MemoryFormat format;

 private:
  /// `reduced`: the sizes there.
  Tensor operand(const Tensor& t, const Shape& reduced) const;
};

/// The implementation for a call: with the policy's `benchmark` the fastest, of the requested one the fastest
/// plan; else what Implementations::get gives.
std::shared_ptr<const ConvImplementation> choose(const ConvCall& call);

/// All implementations and plans that support the call; those of one implementation when `requested` names
/// it. The reference is among them only where it is requested or alone.
std::vector<Candidate> conv_candidates(const ConvCall& call, const std::string& requested);

/// Times candidates for a call (`time_candidates`).
std::vector<Timing> time_conv(const ConvCall& call, const std::vector<Candidate>& candidates,
                              Stopwatch& stopwatch, const TuneOptions& how);

/// How far a pass's result is from the reference: ||result - reference|| / ||reference|| over up to 4,096
/// elements spread over it, summed in float64. x, w and y are five-dimensional, of a floating type and any
/// strides, one of them the result; bias may be undefined. Samples that the result's type cannot hold do not
/// count. NaN when nothing can be said: none counts, or the result is not finite where the reference is,
/// which infinities and NaN among the operands allow (a transform spreads them).
double reference_error(const ConvProblem& problem, ConvPass pass, const Tensor& x, const Tensor& w,
                       const Tensor& bias, const Tensor& y);

}  // namespace pleat::ops
