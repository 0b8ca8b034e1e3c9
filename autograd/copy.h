#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat {

/// What the methods Tensor::to and Tensor::clone do.
Tensor cast(const Tensor& x, DType dtype);  ///< in another type
Tensor cast(const Tensor& x, DType dtype, MemoryFormat format);
Tensor to_device(const Tensor& x, Device device);        ///< on another device
Tensor to_format(const Tensor& x, MemoryFormat format);  ///< in another memory format
Tensor clone(const Tensor& x);                           ///< a copy with storage of its own

/// Copies `from`'s elements into `x`, in place, converting and broadcasting. Returns `x`.
const Tensor& copy_(const Tensor& x, const Tensor& from);

}  // namespace pleat
