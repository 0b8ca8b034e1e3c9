#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace pleat {

/// A file that is either written as a whole or not at all: a reader of `path` sees what was there before
/// until `commit`, and all of the new content after it, even when the program or the machine dies in between.
/// Whatever Pleat writes goes this way.
///
/// It is written beside `path` under a temporary name, flushed to disk and renamed. Without `commit` the
/// destructor removes it. What a killed process left behind is removed by the next AtomicFile in that folder;
/// a lock on each temporary file tells what is still being written.
///
/// A pipe or a character device (/dev/stdout, /dev/null, /dev/fd/63) is written to directly, and never
/// replaced. A pipe without a reader is an error at once, and one whose reader takes nothing for a minute is
/// one then.
class AtomicFile {
 public:
  /// `op` opens the error messages. Links are followed, also to where nothing is yet, and an existing file's
  /// permissions are kept. Throws FileError when the directory takes no file or does not exist, when links
  /// lead in a circle, or when `path` is a folder or another thing that cannot be written.
  AtomicFile(std::string op, std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws FileError as the constructor does, and leaves nothing behind: to be asked before long work. A
  /// pipe is not opened.
  static void check_writable(const std::string& op, const std::filesystem::path& path);

  /// What killed processes left behind in a folder is removed.
  static void remove_leftovers(const std::filesystem::path& folder);

  /// Appends; after `commit` to the file in its place. Throws FileError, for instance when the disk is full,
  /// the file would exceed what the process may write (ulimit -f), or the reader of a pipe went away; the
  /// signals SIGXFSZ and SIGPIPE, which would end the process then, are kept from the thread meanwhile.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Puts the file in its place. Throws FileError.
  void commit();

 private:
  void open_beside();
  void open_directly();
  [[noreturn]] void fail(const char* what, const std::error_code& error) const;

  std::string op_;
  std::filesystem::path path_;
  std::filesystem::path temporary_;  ///< empty: in its place already, or written to directly
  int process_;                      ///< that opened it
  std::intptr_t file_ = -1;          ///< as the system has it; -1: not open
  bool regular_ = true;
};

/// The whole of a file at once. Throws FileError as AtomicFile does.
void write_file(const std::string& op, const std::filesystem::path& path, std::string_view text);

}  // namespace pleat
