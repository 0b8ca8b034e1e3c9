// Private header: not installed.
#pragma once

#include <string_view>

#include "pleat/core/tensor/tensor.h"
#include "pleat/io/byte_source.h"

namespace pleat::io {

/// How a .npy file begins.
inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// read_npy for any source; reads it to its end.
Tensor read_npy(ByteSource& source);

}  // namespace pleat::io
