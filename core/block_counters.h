// Private header: not installed.
#pragma once

#include "pleat/core/device.h"

namespace pleat::cuda {

/// BlockCounters::most counters of this thread for its current stream on `device`, zero when the work before
/// is done. See BlockCounters in core/grid_block.h.
unsigned* block_counters(Device device);

}  // namespace pleat::cuda
