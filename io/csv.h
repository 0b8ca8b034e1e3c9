#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "pleat/core/files/atomic_file.h"

namespace pleat::io {

/// Writes a table as comma-separated values (RFC 4180), a line at a time, so that the lines of an
/// interrupted program are there.
class CsvWriter {
 public:
  /// Floating numbers are written with as many digits as distinguish them; text is quoted where
  /// necessary.
  using Value = std::variant<int64_t, double, std::string>;

  /// Replaces the file by one with the line of names. A pipe or a device is written to directly
  /// (AtomicFile). Throws ValueError without columns, FileError when the file cannot be written.
  CsvWriter(const std::filesystem::path& path, std::vector<std::string> columns);

  /// Writes a line. Throws ValueError unless there is a value for each column, FileError when it cannot be
  /// written.
  void row(const std::vector<Value>& values);

 private:
  void write_line(const std::vector<Value>& values);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  AtomicFile file_;
};

}  // namespace pleat::io
