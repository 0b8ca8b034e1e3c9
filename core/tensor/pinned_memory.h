#pragma once

#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::cuda {

/// A tensor on the CPU in pinned memory, which a GPU reads and writes by itself, so that copies run while the
/// host does something else (`ops::to_device` with `non_blocking`). Elements not initialised, row-major.
/// Throws DeviceError without a GPU, OutOfMemoryError.
Tensor empty_pinned(Sizes shape, DType dtype);

/// `x` itself when it is in pinned memory, else a copy that is, off the tape and in the same memory order
/// (row-major when `x` has gaps). Throws DeviceError without a GPU or when `x` is not on the CPU,
/// OutOfMemoryError.
Tensor pin_memory(const Tensor& x);

/// Whether a tensor is on the CPU in memory from `empty_pinned` or `pin_memory`.
bool is_pinned(const Tensor& x);

/// The allocator of pinned memory, which caches like that of a GPU: memory is reused once the copies from and
/// to it are done. All zero without a GPU.
AllocatorStatistics pinned_memory_statistics();
/// Gives what is cached back to the system. Does nothing without a GPU.
void empty_pinned_memory_cache();

}  // namespace pleat::cuda
