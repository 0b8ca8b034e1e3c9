#include "pleat/ops/conv/options.h"

namespace pleat {
ConvPolicy::ConvPolicy(ConvPolicyOptions options) : scope_(std::move(options)) {}
const ConvPolicyOptions& ConvPolicy::current() {
  static const ConvPolicyOptions none;
  const ConvPolicyOptions* innermost = Scoped<ConvPolicyOptions>::innermost();
  return innermost != nullptr ? *innermost : none;
}

Precision conv_precision(std::optional<Precision> asked) {
  return asked.value_or(ConvPolicy::current().precision.value_or(float32_precision()));
}

}  // namespace pleat
