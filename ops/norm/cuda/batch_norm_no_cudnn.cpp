#include "pleat/core/base/format.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::ops {
namespace {

class NoCudnn final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "cudnn"; }
  std::string unsupported(const BatchNormProblem&, BatchNormPass) const override {
    return "this is Pleat built without cuDNN";
  }
  void forward(const BatchNormProblem&, const BatchNormForward&) const override { refuse(); }
  void backward(const BatchNormProblem&, const BatchNormBackward&) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() { fail<DeviceError>("batch_norm: this is Pleat built without cuDNN"); }
};

}  // namespace

const BatchNormImplementation& cudnn_batch_norm() {
  static const NoCudnn none;
  return none;
}

}  // namespace pleat::ops
