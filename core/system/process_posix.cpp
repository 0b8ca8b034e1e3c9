#include <array>

#include <pthread.h>
#include <unistd.h>

#include "pleat/core/system/process.h"

namespace pleat::system {

int process_id() { return ::getpid(); }

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

int64_t memory_bytes() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  ::pthread_atfork(before, in_parent, in_child);
}

}  // namespace pleat::system
