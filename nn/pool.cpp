#include "pleat/nn/pool.h"

#include "pleat/core/base/format.h"
#include "pleat/nn/options_text.h"

namespace pleat::nn::detail {
namespace {

std::string window_text(const PerDim& kernel_size, const PerDim& stride, const Padding& padding,
                        const PerDim& dilation = 1) {
  std::string result = "kernel_size=" + per_dim_text(kernel_size);
  if (!stride.values().empty()) result += ", stride=" + per_dim_text(stride);
  if (padding_text(padding) != "0") result += ", padding=" + padding_text(padding);
  if (per_dim_text(dilation) != "1") result += ", dilation=" + per_dim_text(dilation);
  return result;
}

}  // namespace

std::string pool_options_text(const MaxPoolOptions& options) {
  return window_text(options.kernel_size, options.stride, options.padding, options.dilation);
}
std::string pool_options_text(const AvgPoolOptions& options) {
  return window_text(options.kernel_size, options.stride, options.padding, options.dilation);
}
std::string pool_options_text(const LpPoolOptions& options) {
  return fmt::format("norm_type={}, ", options.norm_type.get()) +
         window_text(options.kernel_size, options.stride, options.padding, options.dilation);
}
std::string pool_options_text(const MaxUnpoolOptions& options) {
  return window_text(options.kernel_size, options.stride, options.padding.values());
}
std::string pool_options_text(const AdaptivePoolOptions& options) {
  return "output_size=" + per_dim_text(options.output_size);
}

}  // namespace pleat::nn::detail
