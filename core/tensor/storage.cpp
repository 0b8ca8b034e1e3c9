#include "pleat/core/tensor/storage.h"

#include <atomic>
#include <mutex>

#include "pleat/core/base/fork.h"
#include "pleat/core/memory/allocator.h"

namespace pleat {
namespace {

/// Of all storages: what is deferred is computed by all threads of the pool, so one at a time will do. One
/// may be made of another.
auto& computing() {
  static auto& mutex = *new ForkMutex<std::recursive_mutex>;
  return mutex;
}

}  // namespace

uint64_t next_version() {
  static std::atomic<uint64_t> version{0};
  return version.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::shared_ptr<const Deferred> Storage::deferred() const {
  if (!is_deferred_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(computing());
  return deferred_;
}

void Storage::compute() {
  const std::lock_guard lock(computing());
  if (deferred_ == nullptr) return;
  std::shared_ptr<std::byte> bytes = allocate(size, device);
  deferred_->compute(bytes.get());
  bytes_ = std::move(bytes);
  deferred_ = nullptr;
  is_deferred_.store(false, std::memory_order_release);
}

}  // namespace pleat
