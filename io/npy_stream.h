// Private header: not installed.
#pragma once

#include "pleat/core/tensor/tensor.h"
#include "pleat/io/byte_source.h"

namespace pleat::io {

/// read_npy for any source; reads it to its end.
Tensor read_npy(ByteSource& source);

}  // namespace pleat::io
