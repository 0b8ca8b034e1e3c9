#include "pleat/core/memory/allocator.h"

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/device_allocator.h"

namespace pleat {
namespace {

DeviceAllocator& allocator_of(Device device) {
  return device.is_cpu() ? cpu_allocator() : cuda_allocator(device);
}

}  // namespace

std::shared_ptr<std::byte> allocate(int64_t size, Device device) {
  DeviceAllocator& allocator = allocator_of(device);
  check<ShapeError>(size >= 0, "allocate: size must not be negative, got {}", size);
  if (size > (int64_t{1} << 50))
    fail<OutOfMemoryError>("allocate: {} cannot be had on {}", text_of_bytes(size), device);
  return allocator.allocate(size);
}

AllocatorStatistics allocator_statistics(Device device) { return allocator_of(device).statistics(); }
void reset_peak_statistics(Device device) { allocator_of(device).reset_peak(); }
void empty_cache(Device device) { allocator_of(device).release(); }

void set_cache_limit(int64_t bytes, Device device) {
  DeviceAllocator& allocator = allocator_of(device);
  check<ValueError>(bytes >= 0, "set_cache_limit: bytes must not be negative, got {}", bytes);
  allocator.set_limit(bytes);
}

}  // namespace pleat
