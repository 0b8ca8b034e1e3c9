#include "pleat/ops/unbuilt_implementations.h"

namespace pleat::ops {
namespace {

constexpr const char* reason = "this is Pleat built without cuDNN";

}  // namespace

const ConvImplementation& cudnn_conv() {
  static const auto& implementation = *new UnbuiltConv("cudnn", reason);
  return implementation;
}

const BatchNormImplementation& cudnn_batch_norm() {
  static const auto& implementation = *new UnbuiltBatchNorm("cudnn", reason);
  return implementation;
}

}  // namespace pleat::ops
