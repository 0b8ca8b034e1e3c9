#include "pleat/ops/unbuilt_implementations.h"

namespace pleat::ops {
namespace {

constexpr const char* reason = "this is Pleat built without cuDNN";

}  // namespace

const ConvImplementation& cudnn_conv() {
  static const UnbuiltConv implementation("cudnn", reason);
  return implementation;
}

const BatchNormImplementation& cudnn_batch_norm() {
  static const UnbuiltBatchNorm implementation("cudnn", reason);
  return implementation;
}

}  // namespace pleat::ops
