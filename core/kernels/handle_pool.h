// Private header: not installed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "pleat/core/base/fork.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/memory/block_cache.h"

namespace pleat {

/// Handles that no thread uses at the moment.
template <class Handle>
class IdleHandles {
 public:
  /// Never destroyed, and neither are the handles: at the end of a process the driver may be gone before
  /// them.
  static IdleHandles& instance() {
    static auto* idle = new IdleHandles;
    return *idle;
  }

  std::unique_ptr<Handle> take(StreamId stream) {
    const std::lock_guard lock(mutex_);
    auto& handles = handles_[stream];
    if (handles.empty()) return nullptr;
    std::unique_ptr<Handle> handle = std::move(handles.back());
    handles.pop_back();
    return handle;
  }

  void put(StreamId stream, std::unique_ptr<Handle> handle) {
    const std::lock_guard lock(mutex_);
    handles_[stream].push_back(std::move(handle));
  }

 private:
  ForkMutex<std::mutex> mutex_;
  std::map<StreamId, std::vector<std::unique_ptr<Handle>>> handles_;
};

/// The calling thread's handle for a stream; `make(stream)` returns a new std::unique_ptr<Handle>. Making one
/// takes long and it may hold many megabytes, so a thread that ends leaves its handles to those to come.
template <class Handle, class Make>
Handle& thread_handle(StreamId stream, const Make& make) {
  struct Own {
    std::map<StreamId, std::unique_ptr<Handle>> handles;
    ~Own() {
      for (auto& [key, handle] : handles)
        if (handle) IdleHandles<Handle>::instance().put(key, std::move(handle));
    }
  };
  thread_local ThreadObject<Own> own;
  auto& handle = own->handles[stream];
  if (!handle) handle = IdleHandles<Handle>::instance().take(stream);
  if (!handle) handle = make(stream);
  return *handle;
}

}  // namespace pleat
