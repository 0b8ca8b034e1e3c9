#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pleat/core/system/files.h"
#include "pleat/core/system/process.h"

namespace pleat::system {
namespace {

constexpr int patience_seconds = 60;

std::error_code last_error() { return {errno, std::system_category()}; }
int descriptor_of(File file) { return static_cast<int>(file); }

/// The error of a call that gave `result`.
template <class Result>
Result checked(Result result, std::error_code& error) {
  error = result < 0 ? last_error() : std::error_code();
  return result;
}

FileStatus status_of(const struct stat& status) {
  const mode_t mode = status.st_mode;
  const FileKind kind = S_ISREG(mode)    ? FileKind::regular
                        : S_ISDIR(mode)  ? FileKind::folder
                        : S_ISFIFO(mode) ? FileKind::pipe
                        : S_ISCHR(mode)  ? FileKind::device
                        : S_ISBLK(mode)  ? FileKind::disk
                                         : FileKind::socket;
  return {kind, status.st_size, mode & 07777u};
}

/// A reader that went away (EPIPE) and a limit on the size of files (EFBIG) are errors and not the end of the
/// process: the signals that a write sends to its thread are kept from it.
ssize_t write_without_signals(int descriptor, std::span<const std::byte> bytes, std::error_code& error) {
  sigset_t kept, pending, now, before;
  sigemptyset(&kept);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&kept, signal);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &kept, &before);
  const ssize_t some = checked(::write(descriptor, bytes.data(), bytes.size()), error);
  sigpending(&now);
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&pending, signal) != 0 || sigismember(&now, signal) == 0) continue;
    int came = 0;
    sigemptyset(&kept);
    sigaddset(&kept, signal);
    sigwait(&kept, &came);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return some;
}

/// N of /dev/fd/N and its like.
std::optional<int> open_descriptor(const Path& path) {
  const std::string name = path.lexically_normal().string();
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (name.starts_with(folder) && name.size() > folder.size() && name.size() < folder.size() + 7 &&
        name.find_first_not_of("0123456789", folder.size()) == std::string::npos)
      return std::stoi(name.substr(folder.size()));
  return {};
}

/// Whether the open file is the one of that name.
bool is_named(int descriptor, const Path& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode) &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// A file with its lock; `flags` beside O_CREAT.
int create_locked(const Path& path, int flags, bool& taken, std::error_code& error) {
  while (true) {
    const int descriptor = checked(::open(path.c_str(), O_CREAT | O_CLOEXEC | flags, 0666), error);
    if (descriptor < 0) return -1;
    // Until it is locked, who clears up may take it for a leftover, and remove it. A file system without
    // locks reports another error: nobody has one there.
    taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const bool same = is_named(descriptor, path);
    if (same && !taken) return descriptor;
    ::close(descriptor);
    if (taken && (flags & O_EXCL) == 0) return -1;
  }
}

std::error_code wait_for_reader(int descriptor) {
  pollfd waiting{descriptor, POLLOUT, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, 1000 * patience_seconds)) < 0 && errno == EINTR) {
  }
  if (ready < 0) return last_error();
  return ready > 0 ? std::error_code() : std::make_error_code(std::errc::timed_out);
}

}  // namespace

std::string text_of(const std::error_code& error) { return error.message(); }

FileStatus status_of(const Path& path, std::error_code& error) {
  struct stat status {};
  if (checked(::stat(path.c_str(), &status), error) == 0) return status_of(status);
  if (error == std::errc::no_such_file_or_directory) error.clear();
  return {};
}

FileStatus status_of(File file, std::error_code& error) {
  struct stat status {};
  return checked(::fstat(descriptor_of(file), &status), error) == 0 ? status_of(status) : FileStatus{};
}

void close(File file) { ::close(descriptor_of(file)); }

File open_to_read(const Path& path, std::error_code& error) {
  return checked(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error);
}

std::size_t read_at(File file, int64_t offset, std::span<std::byte> buffer, std::error_code& error) {
  ssize_t some = 0;
  do some = ::pread(descriptor_of(file), buffer.data(), buffer.size(), static_cast<off_t>(offset));
  while (some < 0 && errno == EINTR);
  return static_cast<std::size_t>(std::max<ssize_t>(checked(some, error), 0));
}

std::shared_ptr<std::byte> map(File file, std::size_t size, std::error_code& error) {
  void* const place = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_of(file), 0);
  error = place == MAP_FAILED ? last_error() : std::error_code();
  if (error) return nullptr;
  return {static_cast<std::byte*>(place), [size](std::byte* bytes) { ::munmap(bytes, size); }};
}

File create_marked(const Path& path, std::error_code& error) {
  bool taken = false;
  return create_locked(path, O_WRONLY | O_EXCL, taken, error);
}

void remove_unless_marked(const Path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_named(descriptor, path)) ::unlink(path.c_str());
  ::close(descriptor);
}

// Without the right to do so the file has the permissions of a new one.
void set_permissions(File file, unsigned permissions) {
  static_cast<void>(::fchmod(descriptor_of(file), static_cast<mode_t>(permissions)) == 0);
}

File open_to_write(const Path& path, std::error_code& error) {
  return checked(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error);
}

bool may_write(const Path& path, std::error_code& error) {
  return checked(::access(path.c_str(), W_OK), error) == 0;
}

std::optional<File> open_again(const Path& path, std::error_code& error) {
  const auto open = open_descriptor(path);
  if (!open) return {};
  return checked(::fcntl(*open, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error);
}
bool names_open_file(const Path& path) { return open_descriptor(path).has_value(); }

std::error_code write(File file, std::span<const std::byte> bytes, bool regular) {
  while (!bytes.empty()) {
    std::size_t size = bytes.size();
    if (!regular) {
      // What poll finds room for is written without waiting.
      if (const std::error_code error = wait_for_reader(descriptor_of(file))) return error;
      size = std::min<std::size_t>(size, PIPE_BUF);
    }
    std::error_code error;
    const ssize_t some = write_without_signals(descriptor_of(file), bytes.first(size), error);
    if (error.value() == EINTR || error.value() == EAGAIN) continue;
    if (error) return error;
    bytes = bytes.subspan(static_cast<std::size_t>(some));
  }
  return {};
}

std::error_code flush(File file) {
  return ::fsync(descriptor_of(file)) == 0 ? std::error_code() : last_error();
}

std::error_code replace(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return last_error();
  // The new name is on disk only when the directory is. Some file systems refuse that; there is nothing left
  // to do then.
  const Path folder = to.has_parent_path() ? to.parent_path() : ".";
  if (const int open = ::open(folder.c_str(), O_RDONLY | O_CLOEXEC); open >= 0) {
    ::fsync(open);
    ::close(open);
  }
  return {};
}

std::optional<int64_t> file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return static_cast<int64_t>(limit.rlim_cur);
}

std::shared_ptr<void> lock(const Path& path, std::error_code& error) {
  bool taken = false;
  const int descriptor = create_locked(path, O_RDWR, taken, error);
  if (taken) error = std::make_error_code(std::errc::device_or_resource_busy);
  if (descriptor < 0) return nullptr;
  return {nullptr, [path, descriptor, process = process_id()](void*) {
            if (process == process_id()) ::unlink(path.c_str());  // in a child of fork() it is its parent's
            ::close(descriptor);
          }};
}

}  // namespace pleat::system
