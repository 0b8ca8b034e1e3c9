// Private header: not installed.
#pragma once

#include "pleat/core/memory/allocator.h"

namespace pleat {

/// The allocator of one device: what the functions of core/memory/allocator.h call once they have checked
/// their arguments.
class DeviceAllocator {
 public:
  virtual std::shared_ptr<std::byte> allocate(int64_t size) = 0;
  virtual void release() = 0;
  virtual void set_limit(int64_t bytes) = 0;
  virtual AllocatorStatistics statistics() = 0;
  virtual void reset_peak() = 0;
  /// Keeps what is cached for a stream from going back to the device; as often as it is let go.
  virtual void hold(void* /*stream*/) {}
  virtual void let_go(void* /*stream*/) {}
  /// Gives back to the device what is cached over the limit.
  virtual void trim() {}

 protected:
  ~DeviceAllocator() = default;
};

/// These exist as long as the process: tensors in static storage may outlive every other static.
DeviceAllocator& cpu_allocator();
/// Throws DeviceError when there is no such device, or no CUDA in this build.
DeviceAllocator& cuda_allocator(Device device);

}  // namespace pleat
