#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/data/dataset.h"

/// Data sets that are read from files of known formats into memory.

namespace pleat::data {

/// Images [N, 3, 32, 32] uint8 and labels [N] int64, with the names of the classes where the folder holds
/// them.
struct CifarDataset : TensorDataset {
  CifarDataset(Tensor images, Tensor labels, std::vector<std::string> class_names_)
      : TensorDataset(std::move(images), std::move(labels)), class_names(std::move(class_names_)) {}
  std::shared_ptr<const Dataset> copy() const override;
  std::vector<std::string> class_names;
};

/// Reads CIFAR-10's binary version (Krizhevsky, 2009): all `data_batch_*.bin`, in the order of their numbers,
/// or `test_batch.bin`, of a folder. A record is a label byte (0-9) and 3,072 bytes: the red, green and blue
/// planes of 32 x 32 pixels. `options` hold for the whole set. Throws FileError naming file, byte offset and
/// cause: nothing to read, a size that is no whole number of records, a label above 9.
CifarDataset read_cifar10(const std::filesystem::path& folder, Flag train, ReadOptions options = {});

/// Mean and standard deviation of the channels of CIFAR-10's training images, as shares of 255: for
/// `normalize` (data/transforms.h).
inline constexpr std::array<double, 3> cifar10_mean = {0.4914, 0.4822, 0.4465};
inline constexpr std::array<double, 3> cifar10_std = {0.2470, 0.2435, 0.2616};

/// The same for CIFAR-100 (`train.bin`, `test.bin`): two label bytes, of which the fine one (0-99) is taken.
CifarDataset read_cifar100(const std::filesystem::path& folder, Flag train, ReadOptions options = {});

/// Reads an idx file (LeCun's MNIST page), plain or gzipped, with any name: two zero bytes, a type
/// code, the rank, a big-endian 32-bit size for each dimension, then the elements, big-endian. Type
/// codes 0x08 (uint8), 0x09 (int8, read as int32), 0x0B (int16, read as int32), 0x0C (int32), 0x0D
/// (float32) and 0x0E (float64) are known. Throws FileError naming file, offset and cause: not an
/// idx file, another type code, fewer or more elements than its sizes say, more memory than
/// `options` allow.
Tensor read_idx(const std::filesystem::path& path, ReadOptions options = {});

/// MNIST and sets in its format: images [N, 1, H, W] uint8 and labels [N] int64 from
/// `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, or `t10k-...`, in a folder; with `.idx` for
/// `-idx`, and with or without `.gz`. Throws FileError when a file is missing or broken, or images and labels
/// differ in number. `options` hold for each file.
TensorDataset read_mnist(const std::filesystem::path& folder, Flag train, ReadOptions options = {});

}  // namespace pleat::data
