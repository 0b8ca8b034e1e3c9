#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// Memory of the devices: pages without rights, which open only while a device works (open_devices). A block
/// has pages on both sides that never open, and what is fresh or freed holds 0xFF: NaN, -1.

namespace cuda_double {

struct Block {
  std::byte* begin;
  std::size_t size;
  int device;
};

/// nullptr when the device has not as much left.
std::byte* allocate_device(int device, std::size_t bytes);
/// False when it is not the start of a block.
bool free_device(void* memory);
std::size_t free_bytes(int device);

std::byte* allocate_pinned(std::size_t bytes);
bool free_pinned(void* memory);

enum class Kind { pageable, pinned, device };
Kind kind_of(const void* memory);
/// The block that holds an address; nothing when it is in none.
std::optional<Block> block_of(const void* memory);
/// Whether an address lies in the space of a device, allocated or not.
bool in_device_space(const void* memory);

/// Ends the process unless `bytes` from `memory` on lie in one block of the device.
void require_on_device(const char* what, const void* memory, std::size_t bytes, int device);

/// Ends the process when `what` has written between the end of a block of the device and that of its page.
void check_ends(const std::string& what, int device);

/// Lets the memory of these devices be read and written, and no other: a bit for each. Only for whoever holds
/// the machine's lock. Pages change their rights slowly, so that nothing is done where nothing changes.
void open_devices(unsigned devices);

/// Makes a wrong access end with a line that says which. Again and again: a framework for tests puts its own
/// handler there for each of them.
void watch_faults();
/// What the process was doing, for the line that a wrong access ends with.
void set_activity(const std::string& what);

}  // namespace cuda_double
