#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/ops/conv/problem.h"
#include "pleat/ops/implementations.h"

namespace pleat {
class SharedBlocks;  // core/tensor/shared_blocks.h
}

namespace pleat::ops {

struct ResultFinish;  // ops/matmul/result_finish.h
struct ConvFusion;    // ops/conv/fusion.h

enum class ConvPass : unsigned char { forward, backward_input, backward_weight };

/// "forward", "backward_input", "backward_weight".
std::string_view name(ConvPass pass);

/// How an implementation takes its operands and writes its result.
enum class ConvLayout : unsigned char {
  strided,  ///< operands as the caller laid them; the result in the requested format, else in the input's
  nhwc,     ///< all dense channels-last
  nchw,     ///< all dense contiguous
};

/// The layout of one that can write either format.
inline ConvLayout requested_layout(const ConvProblem& problem) {
  return problem.wanted_format() == MemoryFormat::contiguous ? ConvLayout::nchw : ConvLayout::nhwc;
}

/// Passes of a problem with certain weights, forward or backward_input: what these alone decide is done once.
class PreparedConv {
 public:
  virtual ~PreparedConv() = default;
  /// y from x and bias (undefined: none), as in ConvImplementation::forward, then finished; or, of
  /// backward_input, dx as y from dy as x. They lie as the problem says, in any sizes. Threads may call it at
  /// once.
  virtual void run(const Tensor& x, const Tensor& bias, const Tensor& y,
                   const ResultFinish& finish) const = 0;
};

/// One way to compute a convolution.
///
/// Tensors have five dimensions, [N, C, D, H, W], [K, C/g, T, R, S] and [N, K, P, Q, O], with the sizes of
/// the problem given beside them. They lie as `layout` says. In nhwc and nchw the problem is simplified
/// (`simplify`), and its `format` is that of all tensors.
///
/// `cost` is in multiply-adds of float32 at full speed.
class ConvImplementation : public Implementation<ConvProblem, ConvPass> {
 public:
  /// The layout in which it computes a problem of the caller's. One that can write the format asked for
  /// (`problem.result_format`) computes in it; from others the result is converted.
  virtual ConvLayout layout(const ConvProblem& problem) const = 0;
  /// Whether it computes in a half type itself; for others operands are converted to float32.
  virtual bool takes(DType) const { return false; }
  /// Bytes it needs for a problem as `layout` leaves it, beside operands and result while it runs on
  /// `num_threads()` threads.
  virtual int64_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const = 0;

  /// Names of the ways in which it can compute a problem as `layout` leaves it, its own choice first; none
  /// when there is one way only.
  virtual std::vector<std::string> plans(const ConvProblem&, ConvPass) const { return {}; }
  /// This implementation bound to one of its plans; null when it has none.
  virtual std::shared_ptr<const ConvImplementation> with_plan(const std::string&) const { return nullptr; }

  /// y from x, w and bias (undefined: none).
  virtual void forward(const ConvProblem& problem, const Tensor& x, const Tensor& w, const Tensor& bias,
                       const Tensor& y) const = 0;
  /// The same as a part of norm_act_conv or conv_norm_act. False, and nothing is done, where that would gain
  /// nothing.
  virtual bool fused_forward(const ConvProblem&, const Tensor& /*x*/, const Tensor& /*w*/,
                             const Tensor& /*bias*/, const Tensor& /*y*/, ConvFusion&) const {
    return false;
  }
  /// Holds w, and lives no longer than the implementation; what is made of w is one of `shared`. Null: it has
  /// nothing to do in advance.
  virtual std::unique_ptr<PreparedConv> prepare(const ConvProblem&, ConvPass, const Tensor& /*w*/,
                                                SharedBlocks& /*shared*/) const {
    return nullptr;
  }
  /// dx from dy and w.
  virtual void backward_input(const ConvProblem& problem, const Tensor& dy, const Tensor& w,
                              const Tensor& dx) const = 0;
  virtual bool fused_backward_input(const ConvProblem&, const Tensor& /*dy*/, const Tensor& /*w*/,
                                    const Tensor& /*dx*/, ConvFusion&) const {
    return false;
  }
  /// dw from dy and x.
  virtual void backward_weight(const ConvProblem& problem, const Tensor& dy, const Tensor& x,
                               const Tensor& dw) const = 0;
  virtual bool fused_backward_weight(const ConvProblem&, const Tensor& /*dy*/, const Tensor& /*x*/,
                                     const Tensor& /*dw*/, ConvFusion&) const {
    return false;
  }
};

/// The implementations of convolutions.
const Implementations<ConvImplementation>& all_conv_implementations();

/// What it costs to convert operands and result of a half type for an implementation that does not take them,
/// as its `cost`.
double cost_of_conversion(const ConvProblem& problem);

}  // namespace pleat::ops
