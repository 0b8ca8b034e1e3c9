#include "pleat/core/tensor/storage.h"

#include <atomic>

namespace pleat {

uint64_t next_version() {
  static std::atomic<uint64_t> version{0};
  return version.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace pleat
