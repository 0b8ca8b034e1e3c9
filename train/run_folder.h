#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace pleat::train {

/// The folder for the results of a run. A lock keeps other runs out, and results of an earlier run
/// are kept.
class RunFolder {
 public:
  /// Makes the folder and takes its lock, which ends with the process. `results` are the files to come,
  /// and folders, with a '/' at the end of their names.
  /// Throws FileError when the folder cannot be made, when a file in it could not be written, or when
  /// another process has the lock.
  RunFolder(const std::filesystem::path& folder, const std::vector<std::string>& results);

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// A sentence on where `make_room` will move an earlier run's results; "" where there are
  /// none.
  std::string notice() const;
  /// Before the first result is written: metrics.csv of an earlier run becomes metrics.1.csv, and so on with
  /// one number for all files and folders. Until then a run that fails leaves everything as it was.
  void make_room();

 private:
  std::filesystem::path moved(const std::string& name) const;

  std::filesystem::path folder_;
  std::shared_ptr<void> lock_;        ///< on the file .lock in the folder
  std::vector<std::string> earlier_;  ///< results of an earlier run
  int number_ = 1;
};

}  // namespace pleat::train
