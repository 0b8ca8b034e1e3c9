#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace pleat::io {

/// Writes a table as comma-separated values (RFC 4180), a line at a time, so that what an interrupted program
/// had to say is there.
class CsvWriter {
 public:
  /// Floating numbers are written with as many digits as tell them apart; text is quoted where it must be.
  using Value = std::variant<std::int64_t, double, std::string>;

  /// Replaces the file and writes the line of names.
  /// Throws ValueError without columns, FileError when the file cannot be written.
  CsvWriter(const std::filesystem::path& path, std::vector<std::string> columns);
  ~CsvWriter();

  /// Writes a line. Throws ValueError unless there is a value for each column, FileError when it cannot be
  /// written.
  void row(const std::vector<Value>& values);

 private:
  void write_line(const std::vector<Value>& values);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::unique_ptr<std::ofstream> file_;
};

}  // namespace pleat::io
