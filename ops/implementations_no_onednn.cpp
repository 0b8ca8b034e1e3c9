#include "pleat/ops/unbuilt_implementations.h"

namespace pleat::ops {
namespace {

constexpr const char* reason = "this is Pleat built without oneDNN";

}  // namespace

const ConvImplementation& onednn_conv() {
  static const UnbuiltConv implementation("onednn", reason);
  return implementation;
}

const BatchNormImplementation& onednn_batch_norm() {
  static const UnbuiltBatchNorm implementation("onednn", reason);
  return implementation;
}

}  // namespace pleat::ops
