// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/device.h"

namespace pleat {

inline constexpr int64_t most_block_counters = 4096;

/// `most_block_counters` counters of this thread for its current stream on `device`, for Block::last_of
/// (block.h); all zero when the work before is done. Kernels leave them as they found them, and launches of a
/// stream follow one another, so they need no clearing.
unsigned* block_counters(Device device);

}  // namespace pleat
