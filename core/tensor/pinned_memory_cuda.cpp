#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/memory/cuda_memory.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/pinned_memory.h"

namespace pleat::cuda {
namespace {

/// The host is a stream of its own: what it does is done at once, and all work of GPUs is another stream's.
constexpr StreamId host{-1, nullptr};

BlockCache& cache() {
  static auto* memory = new PinnedMemory;
  static auto* result = new BlockCache(*memory);
  return *result;
}

}  // namespace

Tensor empty_pinned(Sizes shape, DType dtype) {
  check_device("empty_pinned", DeviceType::cuda);
  const int64_t size = checked_multiply(count(shape), size_of(dtype), "empty_pinned");
  auto storage = std::make_shared<Storage>(cache().allocate(size, host), size, Device());
  Strides strides = dense_strides(shape);
  return make_tensor(std::move(storage), std::move(shape), std::move(strides), 0, dtype);
}

Tensor pin_memory(const Tensor& x) {
  check_device("pin_memory", DeviceType::cuda);
  check<DeviceError>(x.device().is_cpu(), "pin_memory: needs a tensor on the cpu, got {}", x);
  if (is_pinned(x)) return x;
  Tensor result = empty_pinned(x.shape(), x.dtype());
  if (x.is_dense()) result = result.as_strided(x.shape(), x.strides(), 0);
  ops::copy_into(result, x);
  return result;
}

bool is_pinned(const Tensor& x) {
  const GiveBack* from = std::get_deleter<GiveBack>(x.impl().storage->bytes);
  return from != nullptr && from->cache == &cache();
}

AllocatorStatistics pinned_memory_statistics() { return cache().statistics(); }
void empty_pinned_memory_cache() { cache().release(); }

}  // namespace pleat::cuda
