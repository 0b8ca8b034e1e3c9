#pragma once

#include <memory>
#include <string>
#include <vector>

#include <vector_types.h>

#include "pleat/tests/cuda_double/ptx/counts.h"
#include "pleat/tests/cuda_double/ptx/warp.h"
#include "pleat/tests/cuda_double/shared_watch.h"

/// Executes kernels: blocks one after the other in random order, a block's warps in random order from barrier
/// to barrier.

namespace cuda_double::ptx {

struct Launch {
  std::shared_ptr<const Program> program;
  dim3 blocks, threads;
  std::size_t dynamic_shared = 0;
  std::vector<std::byte> parameters;  ///< aligned by the copy of them that kernels read
};

void run_grid(const Launch& launch);

/// What the warps of a block share.
struct Block {
  const Launch* launch = nullptr;
  const Program* program = nullptr;
  Counter* counter = nullptr;
  uint3 index{};
  unsigned threads = 0;
  std::byte* parameters = nullptr;
  std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
  std::byte* frames = nullptr;  ///< local memory of all threads
  SharedWatch watch;
  std::vector<Warp> warps;
};

/// At a barrier with this number; `votes` are those of the lanes that bring a predicate along.
void wait_at_barrier(Warp& warp, const Instruction& in);

}  // namespace cuda_double::ptx
