#include <algorithm>
#include <fstream>
#include <utility>

#include <cxxabi.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pleat/core/system/process.h"

// What a compiler calls for a `thread_local` object with a destructor (Itanium C++ ABI, 3.3.6.3): unlike that
// object it can be asked for again by destructors that run while the thread ends.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern void* __dso_handle __attribute__((visibility("hidden")));
}

namespace pleat::system {
namespace {

/// The system gives addresses out from the top down. So far below the next one nothing lies, nor comes to lie
/// soon.
constexpr int64_t distance = int64_t{64} << 30;
/// Memory comes in pages of 2 MiB where /sys/kernel/mm/transparent_hugepage/enabled allows them: fewer faults
/// when they are touched first, and fewer misses of the TLB later.
constexpr int64_t huge_page = 2 << 20;

}  // namespace

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "";
}

int64_t cache_bytes() {
  int64_t largest = 0;  // of the first core: "32768K"
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    int64_t size = 0;
    char unit = ' ';
    if (file >> size >> unit)
      largest = std::max(largest, unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size);
  }
  // sysconf adds up the caches of all dies on some machines, so it is asked second.
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (largest <= 0) largest = ::sysconf(level);
  return std::max<int64_t>(largest, 0);
}

bool is_main_thread() { return ::getpid() == ::syscall(SYS_gettid); }

void destroy_at_thread_end(ThreadSlot& slot) {
  if (is_main_thread()) return;
  const auto end = [](void* pointer) {
    auto& ended = *static_cast<ThreadSlot*>(pointer);
    ended.destroy(std::exchange(ended.object, nullptr));
  };
  abi::__cxa_thread_atexit(end, &slot, &__dso_handle);
}

int current_processor() { return ::sched_getcpu(); }

/// Linux at times puts a thread on the processor of its caller although others are idle, and leaves both
/// there for milliseconds.
void leave_processor(int processor) {
  if (processor < 0 || current_processor() != processor) return;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(processor), &others);
  // Where there are no others, the system refuses. The thread is moved at once, and may come back later.
  if (::sched_setaffinity(0, sizeof others, &others) == 0) ::sched_setaffinity(0, sizeof allowed, &allowed);
}

std::byte* free_addresses(int64_t bytes) {
  constexpr std::size_t page = 4096;
  void* const next = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (next == MAP_FAILED) return nullptr;
  ::munmap(next, page);
  const int64_t begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next)) - distance - bytes;
  return begin > 0 ? reinterpret_cast<std::byte*>(begin / huge_page * huge_page) : nullptr;
}

bool add_memory(std::byte* begin, int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* at = ::mmap(begin, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == begin) {
    ::madvise(at, size, MADV_HUGEPAGE);  // small pages where it fails
    return true;
  }
  if (at != MAP_FAILED) ::munmap(at, size);  // kernels before 4.17 take the address for a hint
  return false;
}

void discard_memory(std::byte* begin, int64_t bytes) {
  ::madvise(begin, static_cast<std::size_t>(bytes), MADV_DONTNEED);
}

void release_addresses(std::byte* begin, int64_t bytes) {
  if (bytes > 0) ::munmap(begin, static_cast<std::size_t>(bytes));
}

}  // namespace pleat::system
