// Private header: not installed.
#pragma once

#include <cstdint>

namespace pleat::benchmark {

/// Bytes of the CPU's last cache as the system tells them, between 8 and 256 MiB; 64 MiB where it does not.
int64_t last_cache_bytes();

}  // namespace pleat::benchmark
