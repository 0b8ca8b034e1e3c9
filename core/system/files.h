// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

/// Files as the operating system has them. Where something fails `error` says why, and is zero otherwise.

namespace pleat::system {

using Path = std::filesystem::path;

/// An open file: a descriptor, or a HANDLE of Windows.
using File = std::intptr_t;
constexpr File no_file = -1;

enum class FileKind : unsigned char { none, regular, folder, pipe, device, disk, socket };
struct FileStatus {
  FileKind kind = FileKind::none;
  int64_t size = 0;
  unsigned permissions = 0;  ///< those of POSIX; 0 on Windows
};

/// What an error of these functions means, in the words of POSIX where it has some.
std::string text_of(const std::error_code& error);

/// Links are followed. A file that is not there is no error, but of no kind.
FileStatus status_of(const Path& path, std::error_code& error);
FileStatus status_of(File file, std::error_code& error);
void close(File file);

/// To be read; waits for no writer of a pipe. Others may write, replace and remove it meanwhile.
File open_to_read(const Path& path, std::error_code& error);
/// Bytes that were read, fewer than asked for at times; 0 at the end.
std::size_t read_at(File file, int64_t offset, std::span<std::byte> buffer, std::error_code& error);
/// A whole file in memory, to be read only.
std::shared_ptr<std::byte> map(File file, std::size_t size, std::error_code& error);

/// A new file to be written, which is marked as in use until it is closed. errc::file_exists where there is
/// one.
File create_marked(const Path& path, std::error_code& error);
/// Removes a file that `create_marked` made, unless it is in use.
void remove_unless_marked(const Path& path);
void set_permissions(File file, unsigned permissions);
/// A pipe or a device to be written; errc::no_such_device_or_address for a pipe that nobody reads from.
File open_to_write(const Path& path, std::error_code& error);
bool may_write(const Path& path, std::error_code& error);
/// Where a path names a file that is open here (/dev/stdout, /dev/fd/3): that file once more. Opened by its
/// name, a file that a shell redirected output into would be written from its start, or replaced.
std::optional<File> open_again(const Path& path, std::error_code& error);
bool names_open_file(const Path& path);

/// All of it. Into what is not `regular`, a reader has a minute to take something: errc::timed_out. No signal
/// ends the process.
std::error_code write(File file, std::span<const std::byte> bytes, bool regular);
std::error_code flush(File file);
/// Puts a file in the place of another, or where none is, also on disk.
std::error_code replace(const Path& from, const Path& to);
/// The most bytes that this process may write to a file; none where only the disk limits it.
std::optional<int64_t> file_size_limit();

/// Takes the lock that a file stands for, and makes the file. The lock ends with the process, or with the
/// last copy of what is returned, and with that the file. errc::device_or_resource_busy where another has it.
std::shared_ptr<void> lock(const Path& path, std::error_code& error);

}  // namespace pleat::system
