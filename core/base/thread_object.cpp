#include "pleat/core/base/thread_object.h"

#include <cxxabi.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// What a compiler calls for a `thread_local` object with a destructor (Itanium C++ ABI, 3.3.6.3): unlike that
// object it can be asked for again by destructors that run while the thread ends.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern void* __dso_handle __attribute__((visibility("hidden")));
}

namespace pleat {

bool is_main_thread() {
#if defined(__linux__)
  return ::getpid() == ::syscall(SYS_gettid);
#else
  return false;
#endif
}

void detail::at_thread_end(void (*end)(void*), void* object) {
  if (!is_main_thread()) abi::__cxa_thread_atexit(end, object, &__dso_handle);
}

}  // namespace pleat
