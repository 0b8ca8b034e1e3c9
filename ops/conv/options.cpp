#include "pleat/ops/conv/options.h"

namespace pleat {
namespace {
thread_local ConvPolicyOptions policy;
}

Padding::Padding(int64_t all) : sides_{{all, all}} {}
Padding::Padding(const std::vector<int64_t>& each) {
  for (const int64_t width : each) sides_.emplace_back(width, width);
}
Padding::Padding(std::initializer_list<std::pair<int64_t, int64_t>> sides) : sides_(sides) {}
Padding::Padding(std::vector<std::pair<int64_t, int64_t>> sides) : sides_(std::move(sides)) {}

ConvPolicy::ConvPolicy(ConvPolicyOptions options) : previous_(std::move(policy)) {
  policy = std::move(options);
}
ConvPolicy::~ConvPolicy() { policy = std::move(previous_); }
const ConvPolicyOptions& ConvPolicy::current() { return policy; }

Precision conv_precision(std::optional<Precision> asked) {
  return asked.value_or(policy.precision.value_or(float32_precision()));
}

}  // namespace pleat
