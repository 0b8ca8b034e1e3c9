#include "pleat/profile/cache_size.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <unistd.h>

namespace pleat::benchmark {
namespace {

/// What Linux says of the first core's caches ("32768K"), the largest; 0 where it says nothing.
int64_t from_sysfs() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    int64_t size = 0;
    char unit = ' ';
    if (file >> size >> unit)
      largest = std::max(largest, unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size);
  }
  return largest;
}

}  // namespace

int64_t last_cache_bytes() {
  constexpr int64_t mebibyte = int64_t{1} << 20;
  // sysconf adds up the caches of all dies on some machines, so it is asked second.
  int64_t bytes = from_sysfs();
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (bytes <= 0) bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (bytes <= 0) return 64 * mebibyte;
  return std::clamp(bytes, 8 * mebibyte, 256 * mebibyte);
}

}  // namespace pleat::benchmark
