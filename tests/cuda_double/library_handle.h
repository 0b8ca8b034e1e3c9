#pragma once

#include <memory>
#include <set>
#include <string>

#include "finding.h"
#include "queue.h"
#include <cuda_runtime_api.h>

namespace cuda_double {

/// What cublasContext and cudnnContext begin with.
struct LibraryHandle {
  int device = current_device();
  cudaStream_t stream = nullptr;
  std::weak_ptr<int> user = {};  ///< the thread that used it last, while that lives
};

/// The handles of a library. A handle is of one device; a thread may use it after another that has ended, not
/// beside another: calls of two threads would mix the stream that one has set with the work of the other.
template <class Context>
class LibraryHandles {
 public:
  static LibraryHandles& instance() {
    static auto* result = new LibraryHandles;
    return *result;
  }

  Context* make() { return *made_.insert(new Context).first; }
  /// False where there is none like it.
  bool destroy(Context* handle) {
    if (made_.erase(handle) == 0) return false;
    delete handle;
    return true;
  }
  int64_t count() const { return static_cast<int64_t>(made_.size()); }

  /// Ends the process for one that does not exist, is not of the current device, or is another thread's.
  Context& get(Context* handle, const char* what) const {
    const auto wrong = [&](const std::string& how) { finding(std::string(what) + ": " + how); };
    if (made_.count(handle) == 0) wrong("the handle does not exist, or exists no more");
    if (handle->device != current_device())
      wrong("a handle of device " + std::to_string(handle->device) + " is used while device " +
            std::to_string(current_device()) + " is the current one");
    thread_local const auto self = std::make_shared<int>();
    const auto user = handle->user.lock();
    if (user != nullptr && user != self) wrong("a handle that another thread uses");
    handle->user = self;
    return *handle;
  }

 private:
  std::set<Context*> made_;
};

}  // namespace cuda_double
