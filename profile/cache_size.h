// Private header: not installed.
#pragma once

#include <cstdint>

namespace pleat::benchmark {

/// Bytes of the CPU's last-level cache as the system reports them; 0 where it does not.
int64_t last_cache_bytes();

}  // namespace pleat::benchmark
