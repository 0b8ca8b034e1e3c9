// Private header: not installed.
#pragma once

#include "pleat/core/system/process.h"

namespace pleat {

/// For a `thread_local` variable whose type has a destructor: the object is made at its first use in a
/// thread, and can be used until the thread, or the process, is gone. Other `thread_local` objects and static
/// ones may compute in their destructors. An ending thread that asks again after the object's end gets a new
/// one. That of the main thread stays, for static objects are destroyed after the main thread's variables.
///
/// Likewise a static object with a destructor is one that is never destroyed:
/// `static const auto& names = *new std::vector<std::string>{...};`
/// tests/late_objects.cmake looks for others.
template <class T>
class ThreadObject {
 public:
  T& operator*() {
    if (slot_.object == nullptr) [[unlikely]]
      make();
    return *static_cast<T*>(slot_.object);
  }
  T* operator->() { return &**this; }

 private:
  void make() {
    slot_.object = new T();
    slot_.destroy = [](void* object) { delete static_cast<T*>(object); };
    system::destroy_at_thread_end(slot_);
  }

  system::ThreadSlot slot_;
};

}  // namespace pleat
