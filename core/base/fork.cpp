#include "pleat/core/base/fork.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "pleat/core/system/process.h"

namespace pleat {
namespace detail {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<TakenAtFork*> mutexes;
  std::vector<std::shared_ptr<void>> kept;
};

std::atomic<uint64_t> fork_count{0};

Registry& registry();

bool take_all(const std::vector<TakenAtFork*>& mutexes) {
  const auto refused = std::ranges::find_if_not(mutexes, &TakenAtFork::take);
  if (refused == mutexes.end()) return true;
  std::for_each(mutexes.begin(), refused, [](TakenAtFork* taken) { taken->give_back(); });
  return false;
}

/// No thread has to wait for this one while it waits for another, so no order of the mutexes is needed.
void before_fork() {
  Registry& all = registry();
  for (;;) {
    all.mutex.lock();
    if (take_all(all.mutexes)) return;
    all.mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void in_parent() {
  Registry& all = registry();
  for (TakenAtFork* taken : all.mutexes) taken->give_back();
  all.mutex.unlock();
}

void in_child() {
  Registry& all = registry();
  fork_count.fetch_add(1, std::memory_order_relaxed);
  for (TakenAtFork* taken : all.mutexes) taken->renew();
  all.mutex.unlock();
}

Registry& registry() {
  static auto* all = [] {
    system::at_fork(before_fork, in_parent, in_child);
    return new Registry;
  }();
  return *all;
}

}  // namespace

TakenAtFork::TakenAtFork() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.mutexes.push_back(this);
}

TakenAtFork::~TakenAtFork() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.mutexes, this);
}

uint64_t forks() {
  registry();
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace detail

void keep_for_ever(std::shared_ptr<void> object) {
  detail::Registry& all = detail::registry();
  const std::lock_guard lock(all.mutex);
  all.kept.push_back(std::move(object));
}

}  // namespace pleat
