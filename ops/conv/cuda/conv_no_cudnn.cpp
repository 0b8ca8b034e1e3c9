#include "pleat/core/base/format.h"
#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {
namespace {

class NoCudnnConv : public ConvImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device) const override { return false; }
  std::string unsupported(const ConvProblem&, ConvPass) const override {
    return "this is Pleat built without cuDNN";
  }
  ConvLayout layout(const ConvProblem&) const override { return ConvLayout::nhwc; }
  int64_t workspace_bytes(const ConvProblem&, ConvPass) const override { return 0; }
  void forward(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&,
               const Tensor&) const override {
    refuse();
  }
  void backward_input(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse();
  }
  void backward_weight(const ConvProblem&, const Tensor&, const Tensor&, const Tensor&) const override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { fail<DeviceError>("conv: this is Pleat built without cuDNN"); }
};

}  // namespace

const ConvImplementation& cudnn_conv() {
  static const NoCudnnConv implementation;
  return implementation;
}

}  // namespace pleat::ops
