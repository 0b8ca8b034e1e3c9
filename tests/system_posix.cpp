#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pleat/tests/system.h"

namespace pleat_test {

void set_variable(const std::string& name, const char* value) {
  if (value != nullptr)
    ::setenv(name.c_str(), value, 1);
  else
    ::unsetenv(name.c_str());
}

AddressSpaceLimit::AddressSpaceLimit(int64_t more) {
  rlimit limit{};
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (pages == 0 || ::getrlimit(RLIMIT_AS, &limit) != 0) return;
  const auto before = static_cast<uint64_t>(limit.rlim_cur);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + more));
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return;
  before_ = before;
  // qemu's emulation of programs takes the limit, and does not hold it.
  const auto size = static_cast<std::size_t>(limit.rlim_cur);
  void* const beyond = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (beyond == MAP_FAILED) return;
  ::munmap(beyond, size);
  restore();
}

void AddressSpaceLimit::restore() {
  rlimit limit{};
  if (before_ == 0 || ::getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = static_cast<rlim_t>(before_);
  ::setrlimit(RLIMIT_AS, &limit);
  before_ = 0;
}

AddressSpaceLimit::~AddressSpaceLimit() { restore(); }

int64_t peak_memory_kb() {
  std::ifstream status("/proc/self/status");
  int64_t kb = 0;
  for (std::string word; status >> word;)
    if (word == "VmPeak:") status >> kb;
  return kb;
}

bool replaces_open_files() { return true; }
bool replaces_mapped_files() { return true; }

void leave(int status) { ::_exit(status); }

}  // namespace pleat_test
