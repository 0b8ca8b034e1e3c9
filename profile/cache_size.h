// Private header: not installed.
#pragma once

#include <cstdint>

namespace pleat::benchmark {

/// Bytes of the CPU's last-level cache as the system reports them, limited to 8 to 256 MiB; 64 MiB
/// where it does not.
int64_t last_cache_bytes();

}  // namespace pleat::benchmark
