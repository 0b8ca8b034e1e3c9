#include "pleat/core/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pleat/core/format.h"

namespace pleat {

AtomicFile::AtomicFile(std::string op, std::filesystem::path path)
    : op_(std::move(op)), path_(std::move(path)) {
  std::error_code error;
  if (std::filesystem::is_symlink(path_, error)) {
    const auto target = std::filesystem::weakly_canonical(path_, error);
    if (!error) path_ = target;
  }
  struct stat old {};
  const bool exists = ::stat(path_.c_str(), &old) == 0;
  // A rename would put a plain file in the place of a device or a pipe.
  check<FileError>(!exists || S_ISREG(old.st_mode), "{}: '{}' is not a regular file", op_, path_.string());

  static std::atomic<unsigned> counter = 0;
  do {
    temporary_ = path_;
    temporary_ += fmt::format(".{}-{}.tmp", ::getpid(), counter++);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail("write");
  // Without the right to do so the file has the permissions of a new one.
  if (exists && ::fchmod(descriptor_, old.st_mode & 07777) != 0) errno = 0;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t some = ::write(descriptor_, bytes.data(), bytes.size());
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(some));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("flush");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  ::close(descriptor_);
  descriptor_ = -1;
  // The new name is on disk only when the directory is. Some file systems refuse that; there is nothing left
  // to do then.
  const auto parent = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  if (const int directory = ::open(parent.c_str(), O_RDONLY | O_CLOEXEC); directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void AtomicFile::fail(const char* what) const {
  const int reason = errno;
  pleat::fail<FileError>("{}: cannot {} '{}': {}", op_, what, path_.string(), std::strerror(reason));
}

}  // namespace pleat
