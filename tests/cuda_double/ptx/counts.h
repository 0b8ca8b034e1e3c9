#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pleat/tests/cuda_double/ptx/program.h"

/// What kernels executed: figures that a GPU's time follows from, though they are not times.

namespace cuda_double::ptx {

/// Of one instruction, over all launches of its kernel.
struct InstructionCount {
  uint64_t warps = 0, threads = 0;  ///< that executed it; threads whose guard holds
  uint64_t sectors = 0,
           fewest = 0;  ///< of 32 bytes, asked of global memory; that would hold what was asked for
  uint64_t accesses = 0, passes = 0;  ///< to shared memory; further ones, for conflicts of banks
  uint64_t divergences = 0;           ///< of a branch that the lanes of a warp took and did not take
};

/// Of one kernel.
struct KernelCount {
  std::string name, symbol;
  uint64_t launches = 0, threads = 0, blocks = 0;
  std::array<uint64_t, kinds> thread_instructions{}, warp_instructions{};  ///< by Kind
  uint64_t sectors = 0, fewest_sectors = 0;
  uint64_t shared_accesses = 0, conflicts = 0;
  uint64_t divergences = 0;
  std::size_t shared_bytes = 0;  ///< of a block, static and dynamic; of the last launch
  std::size_t local_bytes = 0;   ///< of a thread

  uint64_t all_thread_instructions() const;
};

/// Counting begins: kernels take somewhat longer. With PLEAT_PTX_COUNTS=file it begins with the process, and
/// the table goes to that file at its end.
void start_counting();
void reset_kernel_counts();
/// Of the kernels launched since counting began, by name.
std::vector<KernelCount> kernel_counts();
/// As a table for people. With `registers`, those of a thread by the kernel's name, it knows how many warps
/// an H100's multiprocessor has room for; without, how many threads, blocks and shared memory leave room for.
std::string table_of(const std::vector<KernelCount>& counts,
                     const std::map<std::string, uint64_t>& registers = {});

struct Counter {
  uint64_t launches = 0, threads = 0, blocks = 0;
  std::size_t shared_bytes = 0;
  std::vector<InstructionCount> of;  ///< by the place of an instruction in the program
};
/// Where a launch of the program counts; nullptr: it does not.
Counter* counter_of(const std::shared_ptr<const Program>& program);

}  // namespace cuda_double::ptx
