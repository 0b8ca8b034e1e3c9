#pragma once

#include <filesystem>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"

/// NumPy's format for one array: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

namespace pleat::io {

/// Reads an array as a row-major tensor.
///
/// The element types bool, uint8, int32, int64, float16, float32 and float64 are kept; int8, int16
/// and uint16 become int32, uint32 and uint64 become int64. Both byte orders and Fortran order are
/// read. Types that no tensor holds (complex, strings, structures, Python objects) throw FileError;
/// nothing is ever unpickled.
///
/// Throws FileError, naming file, offset and cause, when the file cannot be read, is not a .npy file of
/// version 1.0, 2.0 or 3.0, ends too early, has bytes left over, holds a uint64 above the range of int64, or
/// takes more memory than `options` allow.
Tensor read_npy(const std::filesystem::path& path, ReadOptions options = {});

/// Writes a tensor of any strides as a row-major .npy file of version 1.0, under a temporary name that
/// replaces `path` only when all of it is on disk. Throws DTypeError for bfloat16, which NumPy does not know;
/// FileError when the file cannot be written.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace pleat::io
