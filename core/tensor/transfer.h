// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"

/// Bytes that move to, from and on GPUs. Ordered on the current streams of the devices.

namespace pleat::cuda {

/// Copies all elements. `to` and `from` are dense, of the same type, shape and order in memory, at least one
/// of them is on a GPU, and they share no bytes. When one is on the CPU, waits until the copy is done, unless
/// `non_blocking`. Throws DeviceError.
void transfer(const Tensor& to, const Tensor& from, bool non_blocking);

/// Sets every byte of a dense tensor on a GPU, without waiting.
void set_bytes(const Tensor& to, unsigned char value);

}  // namespace pleat::cuda
