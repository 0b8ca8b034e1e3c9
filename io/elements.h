// Private header: not installed.
#pragma once

#include <bit>
#include <cstddef>

#include "pleat/core/tensor/dtype.h"
#include "pleat/io/byte_source.h"

static_assert(std::endian::native == std::endian::little,
              "the readers and writers of files copy elements as they lie");

namespace pleat::io {

/// The type of elements in a file, and the tensor's type, which is wider where tensors do not have
/// the file's type.
struct StoredType {
  char kind;             ///< b, u, i or f as in NumPy's type strings
  std::size_t size = 0;  ///< bytes of an element in the file
  bool swap = false;     ///< most significant byte first
  DType dtype = float32;
};

/// Reads `count` elements as elements of type.dtype. Any byte but 0 is true. Throws FileError when
/// they are truncated, or for a uint64 above the range of int64.
void read_elements(ByteSource& source, const StoredType& type, std::byte* to, std::size_t count);

}  // namespace pleat::io
