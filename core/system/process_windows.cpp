#include <array>
#include <memory>
#include <vector>

#include <pthread.h>
#include <windows.h>

#include "pleat/core/system/process.h"

namespace pleat::system {
namespace {

/// What a thread destroys at its end.
struct Ending {
  ThreadSlot was;
  ThreadSlot* slot;
};
using Endings = std::vector<Ending>;

/// False again once the thread's variables are gone: g++ for Windows gives their memory back before anything
/// is called at a thread's end, and makes new variables for those who ask later.
thread_local bool variables_are_here = false;

void end_thread(void* pointer) {
  const std::unique_ptr<Endings> endings(static_cast<Endings*>(pointer));
  for (auto ending = endings->rbegin(); ending != endings->rend(); ++ending) {
    if (variables_are_here) ending->slot->object = nullptr;
    ending->was.destroy(ending->was.object);
  }
}

pthread_key_t endings_key() {
  static const pthread_key_t only = [] {
    pthread_key_t key{};
    ::pthread_key_create(&key, end_thread);
    return key;
  }();
  return only;
}

void* at(std::byte* begin, int64_t bytes, DWORD what) {
  return ::VirtualAlloc(begin, static_cast<SIZE_T>(bytes), what, PAGE_READWRITE);
}

constexpr uintptr_t alignment_of_addresses = 2 << 20;

}  // namespace

int process_id() { return static_cast<int>(::GetCurrentProcessId()); }

std::string host_name() {
  std::array<char, MAX_COMPUTERNAME_LENGTH + 1> name{};
  DWORD size = name.size();
  return ::GetComputerNameA(name.data(), &size) ? name.data() : "";
}

std::string cpu_model() {
  std::array<char, 256> name{};
  DWORD size = name.size() - 1;
  const LSTATUS status =
      ::RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                     "ProcessorNameString", RRF_RT_REG_SZ, nullptr, name.data(), &size);
  return status == ERROR_SUCCESS ? name.data() : "";
}

int64_t memory_bytes() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return ::GlobalMemoryStatusEx(&status) ? static_cast<int64_t>(status.ullTotalPageFile) : 0;
}

int64_t cache_bytes() { return 0; }      // who asks takes a usual size then
bool is_main_thread() { return false; }  // which is not known; its end calls nothing below

// Windows distributes threads itself.
int current_processor() { return -1; }
void leave_processor(int) {}

void destroy_at_thread_end(ThreadSlot& slot) {
  auto* endings = static_cast<Endings*>(::pthread_getspecific(endings_key()));
  if (endings == nullptr) {
    endings = new Endings;
    ::pthread_setspecific(endings_key(), endings);
    variables_are_here = true;
  }
  endings->push_back({slot, &slot});
}

void at_fork(void (*)(), void (*)(), void (*)()) {}

std::byte* free_addresses(int64_t bytes) {
  void* const begin = at(nullptr, bytes + int64_t{alignment_of_addresses}, MEM_RESERVE);
  if (begin == nullptr) return nullptr;
  const auto place = reinterpret_cast<uintptr_t>(begin) + alignment_of_addresses - 1;
  return reinterpret_cast<std::byte*>(place / alignment_of_addresses * alignment_of_addresses);
}

// Large pages take a right that users lack.
bool add_memory(std::byte* begin, int64_t bytes) { return at(begin, bytes, MEM_COMMIT) != nullptr; }

// What is promised stays so: memory that could not be had again would end the process.
void discard_memory(std::byte* begin, int64_t bytes) { at(begin, bytes, MEM_RESET); }

void release_addresses(std::byte* begin, int64_t) {
  MEMORY_BASIC_INFORMATION place{};
  if (::VirtualQuery(begin, &place, sizeof place) != 0) ::VirtualFree(place.AllocationBase, 0, MEM_RELEASE);
}

}  // namespace pleat::system
