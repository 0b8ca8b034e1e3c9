#include <utility>

#include <pthread.h>

#include "pleat/core/system/process.h"

// What Apple's compiler calls for a `thread_local` object with a destructor.
extern "C" void _tlv_atexit(void (*end)(void*), void* object);

namespace pleat::system {

// Not known without a Mac to try it on.
std::string cpu_model() { return ""; }
int64_t cache_bytes() { return 0; }
bool is_main_thread() { return ::pthread_main_np() != 0; }

void destroy_at_thread_end(ThreadSlot& slot) {
  if (is_main_thread()) return;
  const auto end = [](void* pointer) {
    auto& ended = *static_cast<ThreadSlot*>(pointer);
    ended.destroy(std::exchange(ended.object, nullptr));
  };
  _tlv_atexit(end, &slot);
}

// Threads cannot be moved, and no addresses be had before their memory.
int current_processor() { return -1; }
void leave_processor(int) {}
std::byte* free_addresses(int64_t) { return nullptr; }
bool add_memory(std::byte*, int64_t) { return false; }
void discard_memory(std::byte*, int64_t) {}
void release_addresses(std::byte*, int64_t) {}

}  // namespace pleat::system
