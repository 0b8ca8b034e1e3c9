// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pleat/core/files/read_options.h"

namespace pleat {

/// Bytes of memory that what is read from a file may take, and those that it has taken.
struct MemoryBudget {
  int64_t limit = 0;
  int64_t taken = 0;

  int64_t left() const { return limit - taken; }
};

/// An open file from outside the program, read at any place by any thread: the only way in which files come
/// in. Errors name the operation, the file, the offset and the cause.
class InputFile {
 public:
  /// `op` opens the error messages. Links are followed; pipes, devices and folders are refused at once.
  /// Throws FileError when there is no such regular file or it cannot be read, ValueError for a negative
  /// limit.
  InputFile(std::string_view op, const std::filesystem::path& path, ReadOptions options = {});
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int64_t size() const { return size_; }
  /// "op: 'path'".
  const std::string& name() const { return name_; }
  /// What may be taken for all of it.
  MemoryBudget memory() const { return {memory_limit_}; }

  /// Throws FileError unless [offset, offset + buffer.size()) lies in the file; `what` names what was to be
  /// read.
  void read_at(int64_t offset, std::span<std::byte> buffer, std::string_view what) const;
  /// All of it, without the mark that Windows' editors put before UTF-8. `expansion` is how many bytes of
  /// memory a byte of the text becomes, this text included. Throws FileError when that exceeds the limit.
  std::string read_text(int64_t expansion) const;

  /// All of it, as long as somebody holds it, to be read only; null where it is empty.
  std::shared_ptr<std::byte> map() const;

  /// Throws FileError "<name>, byte <offset>: <cause>".
  [[noreturn]] void fail_at(int64_t offset, const std::string& cause) const;

 private:
  std::string name_;
  std::intptr_t file_;  ///< as the system has it
  int64_t size_ = 0;
  int64_t memory_limit_ = 0;
};

/// The cause by which `bytes` more are refused, with the remedy.
std::string above_memory_limit(std::string_view what, int64_t bytes, MemoryBudget memory);

/// Called while an exception is handled: throws it again as an error of Pleat that names the file (`name` as
/// InputFile::name gives it). Memory that ran out is an OutOfMemoryError, what is no error of Pleat a
/// FileError.
[[noreturn]] void rethrow_naming(const std::string& name);

/// Runs what reads the file.
template <class Body>
auto reading(const std::string& name, const Body& body) {
  try {
    return body();
  } catch (const std::exception&) {
    rethrow_naming(name);
  }
}

}  // namespace pleat
