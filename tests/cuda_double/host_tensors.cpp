#include "host_tensors.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "finding.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" void __libc_free(void*);

namespace cuda_double {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t granule = 64;
constexpr std::size_t small_space = std::size_t{1} << 33;  // of addresses
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t large = std::size_t{1} << 20;  // bytes of blocks that are mapped one by one

std::size_t rounded(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Memory in pages of 2 MiB, where the system has them: `protect` takes as long as there are pages. Null
/// where there are no addresses left.
std::byte* huge_pages(std::size_t bytes) {
  void* const space = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  auto* const from = static_cast<std::byte*>(space);
  auto* const begin = reinterpret_cast<std::byte*>(rounded(reinterpret_cast<std::size_t>(space), huge_page));
  if (begin > from) munmap(from, static_cast<std::size_t>(begin - from));
  munmap(begin + bytes, huge_page - static_cast<std::size_t>(begin - from));
  madvise(begin, bytes, MADV_HUGEPAGE);
  return begin;
}

struct Blocks {
  std::mutex mutex;
  std::byte* begin = nullptr;  // of small blocks
  std::byte* next = nullptr;
  std::map<std::byte*, std::size_t> sizes;              // of small blocks in use
  std::map<std::size_t, std::vector<std::byte*>> idle;  // small ones, by size
  std::map<std::byte*, std::size_t> mapped;             // large ones
  std::atomic<std::byte*> first_mapped = nullptr;       // they lie between these
  std::atomic<std::byte*> last_mapped = nullptr;

  Blocks() {
    begin = next = huge_pages(small_space);
    if (begin == nullptr) finding("no address space is left for tensors on the CPU");
  }

  void* allocate(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard guard(mutex);
    if (bytes >= large || alignment > granule) {
      std::byte* const pages = huge_pages(rounded(bytes, huge_page));
      if (pages == nullptr) return nullptr;
      mapped.emplace(pages, rounded(bytes, huge_page));
      first_mapped = mapped.begin()->first;
      last_mapped = mapped.rbegin()->first;
      return pages;
    }
    const std::size_t size = rounded(std::max<std::size_t>(bytes, 1), granule);
    std::vector<std::byte*>& same = idle[size];
    std::byte* block = nullptr;
    if (!same.empty()) {
      block = same.back();
      same.pop_back();
    } else {
      if (size > static_cast<std::size_t>(begin + small_space - next)) return nullptr;
      block = next;
      next += size;
    }
    sizes.emplace(block, size);
    return block;
  }

  bool is_small(const void* address) const { return address >= begin && address < begin + small_space; }
  bool may_be_mapped(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) % page == 0 && address >= first_mapped.load() &&
           address <= last_mapped.load();
  }

  /// False when it is no block.
  bool free(void* address) {
    const std::lock_guard guard(mutex);
    auto* const block = static_cast<std::byte*>(address);
    if (const auto found = mapped.find(block); found != mapped.end()) {
      munmap(block, found->second);
      mapped.erase(found);
      return true;
    }
    const auto found = sizes.find(block);
    if (found == sizes.end()) return false;
    idle[found->second].push_back(block);
    sizes.erase(found);
    return true;
  }

  bool holds(const void* address) {
    if (is_small(address)) return true;
    auto after = mapped.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
    return after != mapped.begin() && (--after, address < after->first + after->second);
  }

  void protect(int rights) {
    // Whole pages: a part would split one into small ones for good.
    if (next > begin) mprotect(begin, rounded(static_cast<std::size_t>(next - begin), huge_page), rights);
    for (const auto& [block, bytes] : mapped) mprotect(block, bytes, rights);
  }
};

std::atomic<Blocks*> made = nullptr;
Blocks& blocks() {
  static Blocks* const all = [] {
    auto* const result = new Blocks;
    made = result;
    return result;
  }();
  return *all;
}

std::atomic<bool> closed = false;
std::atomic<pthread_t> closer;

}  // namespace

void close_host_tensors() {
  if (closed) return;
  Blocks& all = blocks();
  const std::lock_guard guard(all.mutex);
  closer = pthread_self();
  closed = true;
  all.protect(PROT_NONE);
}

void open_host_tensors() {
  if (!closed) return;
  Blocks& all = blocks();
  const std::lock_guard guard(all.mutex);
  all.protect(PROT_READ | PROT_WRITE);
  closed = false;
}

bool in_host_tensors(const void* address) { return blocks().holds(address); }

bool waited_for_host_tensors() {
  if (closed && pthread_equal(closer, pthread_self()) != 0) return false;
  while (closed) sched_yield();
  return true;
}

}  // namespace cuda_double

// In the place of the C library's.
extern "C" {

// The arena of tensors on the CPU (core/memory/host_arena.h) gets no addresses, so that its blocks come from
// aligned_alloc, too, and are protected.
void* mmap(void* address, std::size_t bytes, int rights, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, rights, flags, file, offset));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (alignment > cuda_double::page) {
    errno = EINVAL;
    return nullptr;
  }
  return cuda_double::blocks().allocate(bytes, alignment);
}

void free(void* address) {
  cuda_double::Blocks* const all = cuda_double::made;
  if (all != nullptr && address != nullptr && (all->is_small(address) || all->may_be_mapped(address)) &&
      all->free(address))
    return;
  __libc_free(address);
}

// A thread that writes a tensor to a file waits, as at any other access: the system would refuse closed
// memory.
ssize_t write(int file, const void* bytes, std::size_t size) {
  while (true) {
    const auto written = static_cast<ssize_t>(syscall(SYS_write, file, bytes, size));
    const bool refused = written < 0 && errno == EFAULT && cuda_double::in_host_tensors(bytes);
    if (!refused || !cuda_double::waited_for_host_tensors()) return written;
  }
}

}  // extern "C"
