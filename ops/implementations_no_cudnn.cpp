#include "pleat/core/base/format.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/norm/implementation.h"

/// "cudnn" where Pleat is built without cuDNN: known by name, and computes nothing.

namespace pleat::ops {
namespace {

constexpr const char* reason = "this is Pleat built without cuDNN";

[[noreturn]] void refuse(const char* op) { fail<DeviceError>("{}: {}", op, reason); }

class NoCudnnConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device) const override { return false; }
  std::string unsupported(const ConvProblem&, ConvPass) const override { return reason; }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }
  int64_t workspace_bytes(const ConvProblem&, ConvPass) const override { return 0; }
  void forward(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&,
               const Tensor&) const override {
    refuse("conv");
  }
  void backward_input(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse("conv");
  }
  void backward_weight(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse("conv");
  }
};

class NoCudnnBatchNorm : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device) const override { return false; }
  std::string unsupported(const BatchNormProblem&, BatchNormPass) const override { return reason; }
  void forward(const BatchNormProblem&, const BatchNormForward&) const override { refuse("batch_norm"); }
  void backward(const BatchNormProblem&, const BatchNormBackward&) const override { refuse("batch_norm"); }
};

}  // namespace

const ConvImplementation& cudnn_conv() {
  static const NoCudnnConv implementation;
  return implementation;
}

const BatchNormImplementation& cudnn_batch_norm() {
  static const NoCudnnBatchNorm implementation;
  return implementation;
}

}  // namespace pleat::ops
