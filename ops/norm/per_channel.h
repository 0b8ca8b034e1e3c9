// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// The numbers of a parameter [channels], `otherwise` for each channel when it is undefined.
inline std::vector<double> per_channel(const Tensor& t, int64_t channels, double otherwise) {
  return t.defined() ? t.to_vector<double>()
                     : std::vector<double>(static_cast<std::size_t>(channels), otherwise);
}

/// The same as a tensor [channels] float64 on the device, dense.
inline Tensor per_channel_on(const Tensor& t, int64_t channels, double otherwise, Device device) {
  if (!t.defined()) return full({channels}, otherwise, {.dtype = float64, .device = device});
  return to_format(cast(t, float64), MemoryFormat::contiguous);
}

}  // namespace pleat::ops
