#include "pleat/core/device/cuda.h"
#include "pleat/core/tensor/pinned_memory.h"

namespace pleat::cuda {

Tensor empty_pinned(Sizes, DType) {
  check_device("empty_pinned", DeviceType::cuda);
  return {};
}

Tensor pin_memory(const Tensor& x) {
  check_device("pin_memory", DeviceType::cuda);
  return x;
}

bool is_pinned(const Tensor&) { return false; }
AllocatorStatistics pinned_memory_statistics() { return {}; }
void empty_pinned_memory_cache() {}

}  // namespace pleat::cuda
