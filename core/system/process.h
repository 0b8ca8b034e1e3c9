// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// The process, its threads and the machine, as the operating system has them; *_posix.cpp, *_linux.cpp,
/// *_macos.cpp and *_windows.cpp beside this.

namespace pleat::system {

int process_id();
std::string host_name();
/// "AMD EPYC 9V74 80-Core Processor"; "" where it is not known.
std::string cpu_model();
/// Physical memory and what pages go to; 0 where it is not known.
int64_t memory_bytes();
/// The largest cache of one core, which it may share; 0 where it is not known.
int64_t cache_bytes();

/// Whether this thread is the one that runs main; false where that is not known.
bool is_main_thread();
/// The processor that the thread runs on; -1 where it is not known.
int current_processor();
/// Moves the thread to another processor when it is on this one, where the system does not do so by itself.
void leave_processor(int processor);

/// An object of a `thread_local` variable, and how it is destroyed.
struct ThreadSlot {
  void* object = nullptr;
  void (*destroy)(void* object) = nullptr;
};
/// When the thread ends, destroys the slot's object and makes it null, so that the slot can be filled again.
/// Never for the main thread.
void destroy_at_thread_end(ThreadSlot& slot);

/// Calls these around each fork(), where there is one: `before` and `in_parent` in the process, `in_child` in
/// the new one.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

/// The first of so many addresses, at a multiple of 2 MiB, that nothing uses, nor will soon; null where the
/// system gives none.
std::byte* free_addresses(int64_t bytes);
/// Whether the system gives the process memory at these addresses, which nothing may use yet.
bool add_memory(std::byte* begin, int64_t bytes);
/// Gives memory back when the system wants it, but not the addresses: what is there is lost.
void discard_memory(std::byte* begin, int64_t bytes);
/// Gives back addresses that `free_addresses` found, and the memory that the first `bytes` of them have.
void release_addresses(std::byte* begin, int64_t bytes);

}  // namespace pleat::system
