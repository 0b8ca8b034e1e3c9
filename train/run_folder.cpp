#include "pleat/train/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"

namespace pleat::train {
namespace fs = std::filesystem;
namespace {

fs::path made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    throw FileError("cannot make the folder '" + folder.string() +
                    "': " + (error ? error.message() : std::strerror(ENOTDIR)));
  return folder;
}

}  // namespace

RunFolder::Lock::Lock(const fs::path& folder) : file_(folder / ".lock"), process_(::getpid()) {
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw FileError("cannot write '" + file_.string() + "': " + std::strerror(errno));
    // A file system without locks reports another error.
    const bool taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat open {
    }, named{};
    // An earlier run may have removed the file while this one opened it.
    const bool same = ::fstat(descriptor_, &open) == 0 && ::stat(file_.c_str(), &named) == 0 &&
                      open.st_dev == named.st_dev && open.st_ino == named.st_ino;
    if (same && !taken) return;
    ::close(descriptor_);
    if (taken)
      throw FileError("another run writes into '" + folder.string() +
                      "'; wait for its end, or give this one another --output");
  }
}

RunFolder::Lock::~Lock() {
  if (process_ == ::getpid()) ::unlink(file_.c_str());  // in a child of fork() it is its parent's
  ::close(descriptor_);
}

RunFolder::RunFolder(const fs::path& folder, const std::vector<std::string>& results)
    : folder_(made(folder)), lock_(folder_) {
  std::error_code error;
  for (const std::string& name : results) {
    if (name.ends_with('/')) {
      if (!fs::is_directory(folder_ / name, error)) continue;
      AtomicFile::remove_leftovers(folder_ / name);  // it is moved away, and nobody writes there any more
      earlier_.push_back(name);
      continue;
    }
    AtomicFile::check_writable("results", folder_ / name);
    // A pipe or a device holds no results.
    if (fs::is_regular_file(folder_ / name, error)) earlier_.push_back(name);
  }
  while (std::any_of(results.begin(), results.end(),
                     [&](const std::string& name) { return fs::exists(moved(name), error); }))
    ++number_;
}

fs::path RunFolder::moved(const std::string& name) const {
  const fs::path file(name.substr(0, name.find('/')));
  return folder_ / (file.stem().string() + '.' + std::to_string(number_) + file.extension().string());
}

std::string RunFolder::notice() const {
  if (earlier_.empty()) return "";
  std::string text = folder_.string() + " holds an earlier run; it will be kept as";
  for (const std::string& name : earlier_)
    text += (name == earlier_.front() ? " " : ", ") + moved(name).filename().string();
  return text;
}

void RunFolder::make_room() {
  for (const std::string& name : earlier_) {
    std::error_code error;
    fs::rename(folder_ / name, moved(name), error);
    if (error)
      throw FileError("cannot move '" + (folder_ / name).string() + "' to '" + moved(name).string() +
                      "': " + error.message());
  }
  earlier_.clear();
}

}  // namespace pleat::train
