#include "pleat/profile/cache_size.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <unistd.h>

namespace pleat::benchmark {
namespace {

/// The largest of the first core's caches from Linux ("32768K"); 0 where there is none.
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
  // sysconf adds up the caches of all dies on some machines, so it is asked second.
  if (const int64_t bytes = from_sysfs(); bytes > 0) return bytes;
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const int64_t bytes = sysconf(level); bytes > 0) return bytes;
  return 0;
}

}  // namespace pleat::benchmark
