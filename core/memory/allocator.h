#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pleat/core/base/device.h"

namespace pleat {

/// What an allocator holds, in bytes and calls.
struct AllocatorStatistics {
  int64_t allocated = 0;      ///< bytes in use now
  int64_t peak = 0;           ///< largest `allocated` since the start or the last reset
  int64_t reserved = 0;       ///< bytes taken from the system or device: in use or kept for reuse
  int64_t peak_reserved = 0;  ///< largest `reserved` since the start or the last reset
  int64_t cached = 0;         ///< bytes kept for reuse
  int64_t requests = 0;       ///< allocations asked for
  int64_t hits = 0;           ///< of these, answered from the cache
  int64_t retries = 0;        ///< of these, answered only after the cache was emptied, or not at all
};

/// Bytes of `size`, 64-byte aligned on the CPU and 512-byte aligned on a GPU, returned to the device's cache
/// when the last owner lets go. Not initialised. On a GPU the memory is for work on the thread's current
/// stream (cuda::current_stream); other streams that use it must be named by cuda::record_stream. Throws
/// OutOfMemoryError with the figures, after having emptied the cache and tried again; DeviceError when there
/// is no such device.
std::shared_ptr<std::byte> allocate(int64_t size, Device device = {});

/// The figures of a device's allocator.
AllocatorStatistics allocator_statistics(Device device = {});
void reset_peak_statistics(Device device = {});

/// Gives what is cached back to the system; on a GPU this waits for its work.
void empty_cache(Device device = {});

/// The most bytes the device's cache keeps (default on the CPU: an eighth of the machine's memory; on a GPU:
/// all). On the CPU the blocks that were given back longest ago make room for others. 0 turns caching off,
/// which on a GPU means to wait for its work at each return of memory.
void set_cache_limit(int64_t bytes, Device device = {});

}  // namespace pleat
