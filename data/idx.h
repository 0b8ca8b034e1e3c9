#pragma once

#include <filesystem>

#include "pleat/core/files/read_options.h"
#include "pleat/data/dataset.h"

namespace pleat::data {

/// Reads an idx file (LeCun's MNIST page), plain or gzipped, with any name: two zero bytes, a type
/// code, the rank, a big-endian 32-bit size for each dimension, then the elements, big-endian. Type
/// codes 0x08 (uint8), 0x09 (int8, read as int32), 0x0B (int16, read as int32), 0x0C (int32), 0x0D
/// (float32) and 0x0E (float64) are known. Throws FileError naming file, offset and cause: not an
/// idx file, another type code, fewer or more elements than its sizes say, more memory than
/// `options` allow.
Tensor read_idx(const std::filesystem::path& path, ReadOptions options = {});

/// MNIST and sets in its format: images [N, 1, H, W] uint8 and labels [N] int64 from
/// `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, or `t10k-...`, with or without `.gz`, in a
/// folder. Throws FileError when a file is missing or broken, or images and labels differ in number.
/// `options` hold for each file.
TensorDataset read_mnist(const std::filesystem::path& folder, Flag train, ReadOptions options = {});

}  // namespace pleat::data
