#include "pleat/nn/pool.h"

#include <fmt/format.h>

#include "pleat/core/format.h"

namespace pleat::nn::detail {
namespace {

std::string text(const PerDim& values) {
  return values.values().size() == 1 ? std::to_string(values.values()[0])
                                     : fmt::format("({})", fmt::join(values.values(), ", "));
}

}  // namespace

std::string pool_options_text(const PerDim& size, const PerDim* stride, const PerDim* padding) {
  if (stride == nullptr) return "output_size=" + text(size);
  std::string result = "kernel_size=" + text(size);
  if (!stride->values().empty()) result += ", stride=" + text(*stride);
  if (text(*padding) != "0") result += ", padding=" + text(*padding);
  return result;
}

}  // namespace pleat::nn::detail
