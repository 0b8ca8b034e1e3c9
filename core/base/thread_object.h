// Private header: not installed.
#pragma once

#include <utility>

namespace pleat {

/// Whether this thread is the one that runs main.
bool is_main_thread();

namespace detail {
/// Calls `end(object)` when the thread ends; never for the main thread.
void at_thread_end(void (*end)(void*), void* object);
}  // namespace detail

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
    if (object_ == nullptr) [[unlikely]]
      make();
    return *object_;
  }
  T* operator->() { return &**this; }

 private:
  void make() {
    object_ = new T();
    detail::at_thread_end(
        [](void* own) { delete std::exchange(static_cast<ThreadObject*>(own)->object_, nullptr); }, this);
  }

  T* object_ = nullptr;
};

}  // namespace pleat
