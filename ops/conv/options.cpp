#include "pleat/ops/conv/options.h"

namespace pleat {
namespace {
thread_local ConvPolicyOptions policy;
}

ConvPolicy::ConvPolicy(ConvPolicyOptions options) : previous_(std::move(policy)) {
  policy = std::move(options);
}
ConvPolicy::~ConvPolicy() { policy = std::move(previous_); }
const ConvPolicyOptions& ConvPolicy::current() { return policy; }

Precision conv_precision(std::optional<Precision> asked) {
  return asked.value_or(policy.precision.value_or(float32_precision()));
}

}  // namespace pleat
