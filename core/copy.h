#pragma once

#include "pleat/core/number.h"
#include "pleat/core/tensor.h"

namespace pleat::ops {

/// Copies the elements of `from` into `to`, converting the type and broadcasting to `to`'s shape; any strides.
/// Floating to integer truncates, anything to bool asks "not 0". Throws ShapeError, DeviceError.
void copy_into(const Tensor& to, const Tensor& from);

/// A copy with storage of its own, in the memory order of `x` (row-major when `x` has gaps or overlaps).
Tensor copy(const Tensor& x);

/// `x` itself when it has the type already, else a converted copy in the same memory order.
Tensor cast(const Tensor& x, DType dtype);

/// `x` itself when it lies in this format already, else a copy that does.
Tensor to_format(const Tensor& x, MemoryFormat format);

/// `x` itself when it is there already, else a copy on the device.
Tensor to_device(const Tensor& x, Device device);

/// Sets every element. Number as in core/number.h.
void fill(const Tensor& x, const Number& value);

}  // namespace pleat::ops
