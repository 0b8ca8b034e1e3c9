#include "pleat/ops/conv/cuda/unfold.h"

/// Unfold + GEMM on a GPU: one launch unfolds windows of many images into a matrix U, small enough to stay
/// in the GPU's second-level cache, and a GEMM multiplies it with the weights. backward_input with stride 1
/// is the forward of dy with flipped weights; with other strides each input pixel gathers what its windows
/// left, without atomics. The order of every sum is fixed. (Formulas: Chellapilla, Puri, Simard: "High
/// performance convolutional neural networks", 2006.)

namespace pleat::ops {
namespace {

/// Single pixels lie alike in both formats; channels-last, all images make one product.
const UnfoldForm& form_of(const ConvProblem& p) {
  const bool single = p.taps() == 1 && p.input_pixels() == 1 && p.output_pixels() == 1;
  return p.format == MemoryFormat::contiguous && !single ? unfold_nchw_form() : unfold_nhwc_form();
}

class UnfoldConvCuda : public ConvImplementation {
 public:
  std::string_view name() const override { return "unfold"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const ConvProblem& problem, ConvPass) const override {
    return problem.device.is_cuda() ? std::string() : std::string("it runs on CUDA");
  }
  ConvLayout layout(const ConvProblem& problem) const override { return requested_layout(problem); }
  bool takes(DType) const override { return true; }
  double cost(const ConvProblem& p, ConvPass) const override { return static_cast<double>(p.flops()); }

  int64_t workspace_bytes(const ConvProblem& p, ConvPass pass) const override {
    return p.batch == 0 ? 0 : form_of(p).workspace_bytes(p, pass);
  }
  void forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const Tensor& bias,
               const Tensor& y) const override {
    form_of(p).forward(p, x, w, bias, y);
  }
  void backward_input(const ConvProblem& p, const Tensor& dy, const Tensor& w,
                      const Tensor& dx) const override {
    form_of(p).backward_input(p, dy, w, dx);
  }
  void backward_weight(const ConvProblem& p, const Tensor& dy, const Tensor& x,
                       const Tensor& dw) const override {
    form_of(p).backward_weight(p, dy, x, dw);
  }
};

}  // namespace

const ConvImplementation* unfold_conv_cuda() {
  static const auto* const implementation = new UnfoldConvCuda;
  return implementation;
}

}  // namespace pleat::ops
