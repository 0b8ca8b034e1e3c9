#include "pleat/ops/unbuilt_implementations.h"

namespace pleat::ops {
namespace {

constexpr const char* reason = "this is Pleat built without oneDNN";

}  // namespace

const ConvImplementation& onednn_conv() {
  static const auto& implementation = *new UnbuiltConv("onednn", reason);
  return implementation;
}

const BatchNormImplementation& onednn_batch_norm() {
  static const auto& implementation = *new UnbuiltBatchNorm("onednn", reason);
  return implementation;
}

}  // namespace pleat::ops
