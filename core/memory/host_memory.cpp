#include "pleat/core/memory/host_memory.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/system/process.h"

namespace pleat {
namespace {

namespace fs = std::filesystem;

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// The bytes that a control group's file allows; "max", a missing file and what exceeds int64 are no limit.
int64_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  int64_t bytes = 0;
  return in >> bytes && bytes >= 0 ? bytes : unlimited;
}

int64_t sum_of(int64_t a, int64_t b) { return a > unlimited - b ? unlimited : a + b; }

/// The least `limit(folder)` of `group` and the groups around it, below `mount`.
template <class Limit>
int64_t least_limit(const fs::path& mount, const fs::path& group, const Limit& limit) {
  int64_t least = limit(mount);
  fs::path folder = mount;
  for (const fs::path& part : group.relative_path()) least = std::min(least, limit(folder /= part));
  return least;
}

int64_t control_group_limit(const fs::path& root, int64_t swap) {
  int64_t least = unlimited;
  std::ifstream groups(root / "proc/self/cgroup");
  // number:controllers:path; version 2 has number 0 and no controllers.
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, least_limit(root / "sys/fs/cgroup", group, [&](const fs::path& folder) {
                         return sum_of(limit_in(folder / "memory.max"),
                                       std::min(limit_in(folder / "memory.swap.max"), swap));
                       }));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, least_limit(root / "sys/fs/cgroup/memory", group, [&](const fs::path& folder) {
                         return sum_of(limit_in(folder / "memory.limit_in_bytes"), swap);
                       }));
  }
  return least;
}

std::atomic<int64_t> for_tests{0};

}  // namespace

int64_t read_host_memory(const fs::path& root) {
  int64_t memory = 0;
  int64_t swap = 0;
  std::ifstream lines(root / "proc/meminfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kibi = 0;
    if (!(words >> name >> kibi)) continue;
    if (name == "MemTotal:") memory = kibi * 1024;
    if (name == "SwapTotal:") swap = kibi * 1024;
  }
  return memory == 0 ? 0 : std::min(memory + swap, control_group_limit(root, swap));
}

int64_t host_memory() {
  static const int64_t found = [] {
    if (const int64_t bytes = read_host_memory("/"); bytes > 0) return bytes;
    const int64_t bytes = system::memory_bytes();
    return bytes > 0 ? bytes : unlimited;
  }();
  const int64_t wanted = for_tests.load(std::memory_order_relaxed);
  return wanted > 0 ? wanted : found;
}

void check_host_memory(const char* op, int64_t bytes) {
  const int64_t used = allocator_statistics().allocated;
  check<OutOfMemoryError>(
      bytes <= host_memory() - used,
      "{}: tables of {} cannot be had: the machine has {}, and tensors use {} of it", op,
      [&] { return text_of_bytes(bytes); }, [] { return text_of_bytes(host_memory()); },
      [&] { return text_of_bytes(used); });
}

HostMemoryScope::HostMemoryScope(int64_t bytes) : previous_(for_tests.exchange(bytes)) {}
HostMemoryScope::~HostMemoryScope() { for_tests = previous_; }

}  // namespace pleat
