#include "pleat/ops/conv/options.h"

namespace pleat {
ConvPolicy::ConvPolicy(ConvPolicyOptions options) : scope_(std::move(options)) {}
const ConvPolicyOptions& ConvPolicy::current() {
  static const ConvPolicyOptions none;
  const ConvPolicyOptions* innermost = Scoped<ConvPolicyOptions>::innermost();
  return innermost != nullptr ? *innermost : none;
}

MemoryFormat conv_format(Device device, DType dtype, Precision precision) {
  const bool rounded = is_half(dtype) || (dtype == float32 && precision != Precision::highest);
  return device.is_cpu() || rounded ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

std::optional<MemoryFormat> conv_result_format(std::optional<MemoryFormat> asked) {
  return asked ? asked : ConvPolicy::current().format;
}

Precision conv_precision(std::optional<Precision> asked) {
  return asked.value_or(ConvPolicy::current().precision.value_or(float32_precision()));
}

}  // namespace pleat
