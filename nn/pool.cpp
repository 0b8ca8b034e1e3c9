#include "pleat/nn/pool.h"

#include "pleat/core/base/format.h"
#include "pleat/nn/options_text.h"

namespace pleat::nn::detail {
namespace {

std::string window_text(const PerDim& kernel_size, const PerDim& stride, const Padding& padding) {
  std::string result = "kernel_size=" + per_dim_text(kernel_size);
  if (!stride.values().empty()) result += ", stride=" + per_dim_text(stride);
  if (padding_text(padding) != "0") result += ", padding=" + padding_text(padding);
  return result;
}

}  // namespace

std::string pool_options_text(const MaxPoolOptions& options) {
  return window_text(options.kernel_size, options.stride, options.padding);
}
std::string pool_options_text(const AvgPoolOptions& options) {
  return window_text(options.kernel_size, options.stride, options.padding);
}
std::string pool_options_text(const LpPoolOptions& options) {
  return fmt::format("norm_type={}, ", options.norm_type.get()) +
         window_text(options.kernel_size, options.stride, 0);
}
std::string pool_options_text(const AdaptivePoolOptions& options) {
  return "output_size=" + per_dim_text(options.output_size);
}

}  // namespace pleat::nn::detail
