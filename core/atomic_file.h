#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pleat {

/// A file that is either written as a whole or not at all: whoever looks at `path` sees what was there before
/// until `commit`, and all of the new content after it, even when the program or the machine dies in between.
///
/// It is written beside `path` under a temporary name, flushed to disk and renamed. Without `commit` the
/// destructor removes it.
class AtomicFile {
 public:
  /// `op` opens the error messages. A link is followed, and an existing file's permissions are kept.
  /// Throws FileError when the directory takes no file, or when `path` is no regular file.
  AtomicFile(std::string op, std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws FileError, for instance when the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Puts the file in its place. Throws FileError.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string op_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace pleat
