#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace cuda_double {

/// A lock that a thread may take again, and can let go of altogether while it waits.
class Lock {
 public:
  void lock() {
    if (!is_own()) {
      mutex_.lock();
      owner_ = std::this_thread::get_id();
    }
    ++depth_;
  }
  bool try_lock() {
    if (!is_own()) {
      if (!mutex_.try_lock()) return false;
      owner_ = std::this_thread::get_id();
    }
    ++depth_;
    return true;
  }
  void unlock() {
    if (--depth_ == 0) let_go();
  }

  /// However often the calling thread holds it: returns how often, for take_again.
  int release() {
    const int depth = std::exchange(depth_, 0);
    let_go();
    return depth;
  }
  void take_again(int depth) {
    lock();
    depth_ = depth;
  }

 private:
  bool is_own() const { return owner_.load() == std::this_thread::get_id(); }
  void let_go() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;
};

}  // namespace cuda_double
