#include "memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "double.h"
#include "finding.h"
#include "host_tensors.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_double {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t space = std::size_t{1} << 36;  // of addresses, for each device
constexpr int poison = 0xFF;
// Rights of large pages change as fast as those of small ones, and each has 512 times the bytes.
constexpr std::size_t large_page = std::size_t{1} << 21;
// More bytes than these, at both ends of a block, are not poisoned: touching all of what a test of the limits
// asks for would take the machine's own memory.
constexpr std::size_t most_poisoned = std::size_t{1} << 26;

constexpr std::size_t alignment = 256;
std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::size_t pages_for(std::size_t bytes) { return (bytes + page - 1) / page * page; }

/// Where a block of so many bytes begins that has a page without rights before it.
std::byte* after_guard(std::byte* last, std::size_t bytes) {
  const std::size_t step = bytes % large_page == 0 ? large_page : page;
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(last) / step + 1) * step);
}

/// What a line may hold when a signal writes it.
char activity[512] = "the host";

struct sigaction before;

struct Space {
  std::byte* begin = nullptr;
  std::byte* next = nullptr;
  std::size_t used = 0;
  std::map<std::byte*, std::size_t> blocks;     // in use
  std::multimap<std::size_t, std::byte*> idle;  // pages between guards, by size
  bool open = false;

  void protect(int rights) const {
    for (const auto& [block, size] : blocks) {
      std::byte* const first =
          reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(block) / page * page);
      if (mprotect(first, pages_for(static_cast<std::size_t>(block + size - first)), rights) != 0)
        finding("mprotect failed");
    }
  }
};

struct Memory {
  std::array<Space, devices> spaces;
  std::map<std::byte*, std::size_t> pinned;

  Memory();
};

Memory& memory() {
  static auto* result = new Memory;
  return *result;
}

// Says which wrong access it was; what was there before then ends the process.
void on_fault(int signal, siginfo_t* info, void*) {
  const char* what = nullptr;
  const auto block = block_of(info->si_addr);
  if (block) {
    what = "memory of a device, which only that device can read and write,";
  } else if (in_device_space(info->si_addr)) {
    what = "an address of a device that belongs to no block (past the end of one, or freed),";
  } else if (in_host_tensors(info->si_addr)) {
    if (waited_for_host_tensors()) return;
    what = "memory of the host";
  } else if (std::strcmp(activity, "the host") != 0) {
    what = "an address that is nobody's";
  }
  if (what != nullptr) {
    char line[768];
    const int n =
        std::snprintf(line, sizeof line, "cuda double: %s touched %s at %p\n", activity, what, info->si_addr);
    if (n > 0) (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(n));
  }
  sigaction(signal, &before, nullptr);
}

Memory::Memory() {
  for (Space& each : spaces) {
    void* const begin = mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) finding("no address space is left for the devices' memory");
    madvise(begin, space, MADV_HUGEPAGE);
    each.begin = static_cast<std::byte*>(begin);
    each.next = after_guard(each.begin, large_page);
  }
}

}  // namespace

void finding(const std::string& what) {
  std::fprintf(stderr, "cuda double: %s\n", what.c_str());
  std::abort();
}

void set_activity(const std::string& what) { std::snprintf(activity, sizeof activity, "%s", what.c_str()); }

void watch_faults() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) return;
  before = now;
  now = {};
  now.sa_sigaction = on_fault;
  now.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &now, nullptr);
}

std::byte* allocate_device(int device, std::size_t bytes) {
  watch_faults();
  Space& own = memory().spaces[static_cast<std::size_t>(device)];
  if (bytes > device_memory - own.used) return nullptr;
  const std::size_t pages = pages_for(bytes);
  std::byte* first = nullptr;
  if (const auto found = own.idle.find(pages); found != own.idle.end()) {
    first = found->second;
    own.idle.erase(found);
  } else {
    first = after_guard(own.next, pages);
    if (pages > static_cast<std::size_t>(own.begin + space - first)) return nullptr;
    own.next = first + pages;
  }
  // The end is that of a page, so that a step past it is noticed, but for what addresses are multiples of.
  std::byte* const begin = first + (pages - rounded(bytes));
  mprotect(first, pages, PROT_READ | PROT_WRITE);
  std::memset(first, poison, std::min(pages, most_poisoned));
  if (pages > most_poisoned) std::memset(first + pages - page, poison, page);
  if (!own.open) mprotect(first, pages, PROT_NONE);
  own.blocks.emplace(begin, bytes);
  own.used += bytes;
  return begin;
}

bool free_device(void* freed) {
  auto* const begin = static_cast<std::byte*>(freed);
  for (Space& each : memory().spaces) {
    const auto found = each.blocks.find(begin);
    if (found == each.blocks.end()) continue;
    const std::size_t pages = pages_for(found->second);
    std::byte* const first = begin - (pages - rounded(found->second));
    // The memory goes back to the system.
    madvise(first, pages, MADV_DONTNEED);
    mprotect(first, pages, PROT_NONE);
    each.used -= found->second;
    each.idle.emplace(pages, first);
    each.blocks.erase(found);
    return true;
  }
  return false;
}

std::size_t free_bytes(int device) {
  return device_memory - memory().spaces[static_cast<std::size_t>(device)].used;
}

std::byte* allocate_pinned(std::size_t bytes) {
  void* const pages =
      mmap(nullptr, pages_for(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(pages);
  std::memset(begin, poison, bytes);
  memory().pinned.emplace(begin, bytes);
  return begin;
}

bool free_pinned(void* freed) {
  const auto found = memory().pinned.find(static_cast<std::byte*>(freed));
  if (found == memory().pinned.end()) return false;
  munmap(freed, pages_for(found->second));
  memory().pinned.erase(found);
  return true;
}

bool in_device_space(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  for (const Space& each : memory().spaces)
    if (at >= each.begin && at < each.begin + space) return true;
  return false;
}

namespace {
template <class Map>
auto holder(Map& blocks, const void* address) {
  auto after = blocks.upper_bound(static_cast<std::byte*>(const_cast<void*>(address)));
  if (after == blocks.begin()) return blocks.end();
  --after;
  return static_cast<const std::byte*>(address) < after->first + after->second ? after : blocks.end();
}
}  // namespace

std::optional<Block> block_of(const void* address) {
  for (std::size_t device = 0; device < devices; ++device) {
    auto& blocks = memory().spaces[device].blocks;
    if (const auto found = holder(blocks, address); found != blocks.end())
      return Block{found->first, found->second, static_cast<int>(device)};
  }
  return {};
}

Kind kind_of(const void* address) {
  if (in_device_space(address)) return Kind::device;
  return holder(memory().pinned, address) != memory().pinned.end() ? Kind::pinned : Kind::pageable;
}

void require_on_device(const char* what, const void* address, std::size_t bytes, int device) {
  if (bytes == 0) return;
  const std::string operand = std::string(what) + ": ";
  const auto block = block_of(address);
  if (!block)
    finding(operand + (in_device_space(address) ? "is given memory that is in no block"
                                                : "is given memory of the host"));
  if (block->device != device)
    finding(operand + "works on device " + std::to_string(device) + " and is given memory of device " +
            std::to_string(block->device));
  if (static_cast<const std::byte*>(address) + bytes > block->begin + block->size)
    finding(operand + "reaches past the end of a block of " + std::to_string(block->size) + " bytes");
}

void check_ends(const std::string& what, int device) {
  static const std::vector<unsigned char> untouched(alignment, poison);
  for (const auto& [begin, size] : memory().spaces[static_cast<std::size_t>(device)].blocks)
    if (const std::size_t rest = rounded(size) - size;
        rest > 0 && std::memcmp(begin + size, untouched.data(), rest) != 0)
      finding(what + " wrote past the end of a block of " + std::to_string(size) + " bytes");
}

void open_devices(unsigned which) {
  for (unsigned device = 0; device < devices; ++device) {
    Space& own = memory().spaces[device];
    const bool open = (which >> device & 1u) != 0;
    if (open == own.open) continue;
    own.open = open;
    own.protect(open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

}  // namespace cuda_double
