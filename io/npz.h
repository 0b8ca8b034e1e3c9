#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::io {

/// NumPy's archive of named arrays, as `numpy.savez` and `numpy.savez_compressed` write it: a zip file of
/// .npy files. Their names end in ".npy", or do not; entries of other kinds are no arrays.
///
/// Only the directory is read at first, so that one array of a large archive can be read without
/// the others. Copies refer to the same open file; reading from several threads is safe.
class NpzReader {
 public:
  /// `options` hold for each array. Throws FileError, naming file, offset and cause, when it is not a zip
  /// file that can be read, its entries share bytes, or none of them is an array.
  explicit NpzReader(const std::filesystem::path& path, ReadOptions options = {});

  /// Names of the arrays (without ".npy"), in the order of the archive.
  const std::vector<std::string>& names() const;
  bool contains(const std::string& name) const;
  /// Reads an array as read_npy does, and verifies its checksum. Throws ValueError with the names
  /// in the archive when there is no such name, FileError when the array is damaged.
  Tensor read(const std::string& name) const;

 private:
  friend std::map<std::string, Tensor> read_npz(const std::filesystem::path& path, ReadOptions options);
  Tensor read(const std::string& name, int64_t taken) const;

  struct State;
  std::shared_ptr<const State> state_;
};

/// All arrays of an archive; the limit in `options` is for all together, with their headers, and is looked at
/// before the first is read. Throws as NpzReader does.
std::map<std::string, Tensor> read_npz(const std::filesystem::path& path, ReadOptions options = {});

}  // namespace pleat::io
