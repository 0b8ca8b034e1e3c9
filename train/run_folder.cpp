#include "pleat/train/run_folder.h"

#include <algorithm>

#include "pleat/core/base/error.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/files/make_folder.h"
#include "pleat/core/system/files.h"

namespace pleat::train {
namespace fs = std::filesystem;
namespace {

/// The lock of a folder, held until the last copy is gone.
std::shared_ptr<void> locked(const fs::path& folder) {
  const fs::path file = folder / ".lock";
  std::error_code error;
  auto lock = system::lock(file, error);
  if (error == std::errc::device_or_resource_busy)
    throw FileError("another run writes into '" + folder.string() +
                    "'; wait for its end, or give this one another --output");
  if (error) throw FileError("cannot write '" + file.string() + "': " + system::text_of(error));
  return lock;
}

}  // namespace

RunFolder::RunFolder(const fs::path& folder, const std::vector<std::string>& results) : folder_(folder) {
  make_folder("RunFolder", folder);
  lock_ = locked(folder);
  std::error_code error;
  for (const std::string& name : results) {
    if (name.ends_with('/')) {
      if (!fs::is_directory(folder_ / name, error)) continue;
      AtomicFile::remove_leftovers(folder_ / name);  // it is moved away, and no process writes there any more
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
                      "': " + system::text_of(error));
  }
  earlier_.clear();
}

}  // namespace pleat::train
