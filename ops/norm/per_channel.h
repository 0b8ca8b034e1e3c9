// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/copy.h"
#include "pleat/core/tensor.h"

namespace pleat::ops {

/// The numbers of a parameter [channels], `otherwise` for each channel when it is undefined.
inline std::vector<double> per_channel(const Tensor& t, int64_t channels, double otherwise) {
  return t.defined() ? t.to_vector<double>()
                     : std::vector<double>(static_cast<std::size_t>(channels), otherwise);
}

}  // namespace pleat::ops
