#pragma once

#include "pleat/core/tensor/number.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// Copies the elements of `from` into `to`, converting the type and broadcasting to `to`'s shape; any
/// strides, any two devices. Floating to integer cuts towards 0, and takes the nearer end of the range for
/// what lies outside and 0 for NaN; integers wrap around; anything to bool is "not 0". Throws ShapeError,
/// DeviceError.
void copy_into(const Tensor& to, const Tensor& from);

/// A copy with storage of its own, in the memory order of `x` (row-major when `x` has gaps or overlaps).
Tensor copy(const Tensor& x);

/// `x` itself when it has the type already, else a converted copy in the same memory order.
Tensor cast(const Tensor& x, DType dtype);
/// `x` itself when it has the type and lies in this format already, else a converted copy that does.
Tensor cast(const Tensor& x, DType dtype, MemoryFormat format);

/// `x` itself when it lies in this format already, else a copy that does.
Tensor to_format(const Tensor& x, MemoryFormat format);

struct TransferOptions {
  /// Whether a copy between the CPU and a GPU may still be under way when the function returns. It is in
  /// order on the GPU's current stream. A source in pinned memory (core/tensor/pinned_memory.h) must not be
  /// changed before the copy is done; a result on the CPU is in pinned memory, and is to be read only then.
  /// Other sources may be changed at once.
  bool non_blocking = false;
};

/// `x` itself when it is there already, else a copy on the device, in the memory order of `x` (row-major when
/// `x` has gaps). Throws DeviceError, saying how many there are, when there is no such device.
Tensor to_device(const Tensor& x, Device device, TransferOptions options = {});

/// Sets every element. Throws ValueError when x's type cannot hold the number (docs/types.md).
void fill(const Tensor& x, const Scalar& value);

}  // namespace pleat::ops
