#include "pleat/nn/pool.h"

#include "pleat/nn/options_text.h"

namespace pleat::nn::detail {
std::string pool_options_text(const PerDim& size, const PerDim* stride, const Padding* padding) {
  if (stride == nullptr) return "output_size=" + per_dim_text(size);
  std::string result = "kernel_size=" + per_dim_text(size);
  if (!stride->values().empty()) result += ", stride=" + per_dim_text(*stride);
  if (padding_text(*padding) != "0") result += ", padding=" + padding_text(*padding);
  return result;
}

}  // namespace pleat::nn::detail
