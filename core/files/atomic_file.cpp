#include "pleat/core/files/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"

namespace pleat {
namespace {

namespace fs = std::filesystem;

constexpr int patience_seconds = 60;
constexpr std::string_view mark = ".pleat-";
constexpr std::string_view ending = ".tmp";
constexpr std::size_t longest_name = 200;  ///< of a temporary file's part of the name, of 255 bytes in all

/// A reader that went away (EPIPE) and a limit on the size of files (EFBIG) are errors and not the end of the
/// process. The signals that a write sends to its thread are kept from this thread alone.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&set_);
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, signal) == 0) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~WithoutSignals() {
    const int error = errno;
    const timespec at_once{};
    while (sigtimedwait(&set_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t set_, before_;
};

/// N of /dev/fd/N and its like: names of what is open already. Opened again, a file that the shell redirected
/// output into would be written from its start, or replaced.
std::optional<int> open_descriptor(const fs::path& path) {
  const std::string name = path.lexically_normal().string();
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (name.starts_with(folder) && name.size() > folder.size() && name.size() < folder.size() + 7 &&
        name.find_first_not_of("0123456789", folder.size()) == std::string::npos)
      return std::stoi(name.substr(folder.size()));
  return {};
}

/// Ends in "<pid>-<number>.tmp" after the mark, or after the name of the file itself and a dot, as it was
/// once.
bool is_temporary(std::string_view name, const std::string& file) {
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  for (const bool last : {true, false}) {
    const std::size_t digits = name.size() - (name.find_last_not_of("0123456789") + 1);
    name.remove_suffix(digits);
    if (digits == 0) return false;
    if (last && !name.ends_with('-')) return false;
    if (last) name.remove_suffix(1);
  }
  return name.ends_with(mark) ||
         (name.size() == file.size() + 1 && name.starts_with(file) && name.back() == '.');
}

/// Whether the open file is the one of that name.
bool is_named(int descriptor, const fs::path& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && S_ISREG(named.st_mode) &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/// Temporary files without a lock: of any file by their mark, and of `file`.
void remove_temporaries(const fs::path& folder, const std::string& file) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!is_temporary(path.filename().string(), file)) continue;
    const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_named(descriptor, path)) ::unlink(path.c_str());
    ::close(descriptor);
  }
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

/// Where links lead, whether or not something is there yet.
fs::path followed(const std::string& op, const fs::path& path) {
  constexpr int most_links = 40;  // as many as Linux follows
  fs::path place = path;
  std::error_code error;
  for (int links = 0; !open_descriptor(place) && fs::is_symlink(place, error); ++links) {
    const fs::path target = fs::read_symlink(place, error);
    if (!error && links == most_links) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    check<FileError>(!error, "{}: cannot follow the link '{}': {}", op, path.string(), error.message());
    place = folder_of(place) / target;
  }
  return place;
}

}  // namespace

AtomicFile::AtomicFile(std::string op, fs::path path)
    : op_(std::move(op)), path_(std::move(path)), process_(::getpid()) {
  check<FileError>(!path_.empty(), "{}: a file's name must not be empty", op_);
  path_ = followed(op_, path_);
  if (const auto open = open_descriptor(path_)) {
    descriptor_ = ::fcntl(*open, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (descriptor_ < 0) fail("write");
    struct stat status {};
    regular_ = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
    return;
  }
  struct stat old {};
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) fail("write");
  if (exists && (S_ISFIFO(old.st_mode) || S_ISCHR(old.st_mode))) {
    open_directly();
    return;
  }
  // A rename would put a plain file in the place of a disk or a socket.
  check<FileError>(!exists || S_ISREG(old.st_mode), "{}: '{}' is {}, not a regular file", op_, path_.string(),
                   S_ISDIR(old.st_mode)   ? "a folder"
                   : S_ISBLK(old.st_mode) ? "a block device"
                                          : "a socket");
  open_beside();
  // Without the right to do so the file has the permissions of a new one.
  if (exists && ::fchmod(descriptor_, old.st_mode & 07777) != 0) errno = 0;
}

void AtomicFile::open_beside() {
  const fs::path folder = folder_of(path_);
  const std::string name = path_.filename().string();
  remove_temporaries(folder, name);
  static std::atomic<unsigned> counter = 0;
  while (true) {
    temporary_ = folder / fmt::format("{}{}{}-{}{}", std::string_view(name).substr(0, longest_name), mark,
                                      ::getpid(), counter++, ending);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail("write");
    // Until it is locked, who clears up may take it for a leftover. Some file systems know no locks: nothing
    // is cleared up there.
    const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_named(descriptor_, temporary_)) return;
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

void AtomicFile::open_directly() {
  // Waits for no reader.
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  check<FileError>(descriptor_ >= 0 || errno != ENXIO,
                   "{}: '{}' is a pipe that nobody reads from; start its reader first", op_, path_.string());
  if (descriptor_ < 0) fail("write");
  regular_ = false;
}

void AtomicFile::check_writable(const std::string& op, const fs::path& path) {
  struct stat status {};
  if (!open_descriptor(path) && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    // Closing it again would tell its reader that all was said.
    check<FileError>(::access(path.c_str(), W_OK) == 0, "{}: cannot write '{}': {}", op, path.string(),
                     std::strerror(errno));
    return;
  }
  const AtomicFile probe(op, path);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  // In a child of fork() it is still its parent's.
  if (!temporary_.empty() && process_ == ::getpid()) ::unlink(temporary_.c_str());
}

void AtomicFile::remove_leftovers(const fs::path& folder) { remove_temporaries(folder, ""); }

void AtomicFile::wait_for_reader() const {
  pollfd waiting{descriptor_, POLLOUT, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, 1000 * patience_seconds)) < 0 && errno == EINTR) {
  }
  if (ready < 0) fail("write");
  check<FileError>(ready > 0, "{}: cannot write '{}': nobody took anything from it for {} s", op_,
                   path_.string(), patience_seconds);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t size = bytes.size();
    if (!regular_) {
      // What poll finds room for is written without waiting.
      wait_for_reader();
      size = std::min<std::size_t>(size, PIPE_BUF);
    }
    const WithoutSignals guard;
    const ssize_t some = ::write(descriptor_, bytes.data(), size);
    if (some < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (some < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(some));
  }
}

void AtomicFile::commit() {
  // What is no file on a disk cannot be flushed to one.
  if (::fsync(descriptor_) != 0 && regular_) fail("flush");
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  temporary_.clear();
  // The new name is on disk only when the directory is. Some file systems refuse that; there is nothing left
  // to do then.
  if (const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_CLOEXEC); folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void AtomicFile::fail(const char* what) const {
  const int reason = errno;
  std::string remedy;
  rlimit limit{};
  if (reason == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    remedy = fmt::format("; this process may write {} a file: raise the limit (ulimit -f)",
                         text_of_bytes(static_cast<int64_t>(limit.rlim_cur)));
  std::error_code error;
  if (reason == ENOENT && !fs::exists(folder_of(path_), error))
    remedy = fmt::format("; make the folder '{}' first", folder_of(path_).string());
  pleat::fail<FileError>("{}: cannot {} '{}': {}{}", op_, what, path_.string(), std::strerror(reason),
                         remedy);
}

void write_file(const std::string& op, const fs::path& path, std::string_view text) {
  AtomicFile file(op, path);
  file.write(text);
  file.commit();
}

}  // namespace pleat
