// Private header: not installed.
#pragma once

#include <cstdint>
#include <filesystem>

/// How much memory there is on the host. The system promises more than it has and ends the process that takes
/// it at its word, so what cannot be had is refused beforehand.

namespace pleat {

/// Bytes that this process can have: physical memory and swap, or what its control groups allow where that is
/// less. Other processes have their part of them.
int64_t host_memory();

/// The same from the files of /proc and /sys below `root`; 0 when they do not say it.
int64_t read_host_memory(const std::filesystem::path& root);

/// Throws OutOfMemoryError naming `op` when `bytes` beside the tensors are more than the host has: for tables
/// whose size the caller decides.
void check_host_memory(const char* op, int64_t bytes);

/// While one exists, the host has so many bytes: for tests.
class HostMemoryScope {
 public:
  explicit HostMemoryScope(int64_t bytes);
  ~HostMemoryScope();
  HostMemoryScope(const HostMemoryScope&) = delete;
  HostMemoryScope& operator=(const HostMemoryScope&) = delete;

 private:
  int64_t previous_;
};

}  // namespace pleat
