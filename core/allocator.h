#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pleat/core/device.h"

namespace pleat {

/// What an allocator holds, in bytes and calls.
struct AllocatorStatistics {
  int64_t allocated = 0;  ///< bytes in use now
  int64_t peak = 0;       ///< largest `allocated` since the start or the last reset
  int64_t cached = 0;     ///< bytes kept for reuse
  int64_t requests = 0;   ///< allocations asked for
  int64_t hits = 0;       ///< of these, answered from the cache
};

/// Bytes of `size`, 64-byte aligned on the CPU, returned to the device's cache when the last owner lets go.
/// Not initialised. Throws OutOfMemoryError with the figures, after having emptied the cache and tried again.
std::shared_ptr<std::byte> allocate(int64_t size, Device device = {});

/// The figures of a device's allocator.
AllocatorStatistics allocator_statistics(Device device = {});
void reset_peak_statistics(Device device = {});

/// Gives what is cached back to the system.
void empty_cache(Device device = {});

/// The most bytes the device's cache keeps (CPU default: an eighth of the machine's memory). 0 turns caching off.
void set_cache_limit(int64_t bytes, Device device = {});

}  // namespace pleat
