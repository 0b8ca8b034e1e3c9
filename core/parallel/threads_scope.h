// Private header: not installed.
#pragma once

#include "pleat/core/parallel/parallel.h"

namespace pleat {

/// Sets the number of threads for a scope, where one is asked for (threads > 0).
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads) : previous_(num_threads()) {
    if (threads > 0) set_num_threads(threads);
  }
  ~ThreadsScope() { set_num_threads(previous_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int previous_;
};

}  // namespace pleat
