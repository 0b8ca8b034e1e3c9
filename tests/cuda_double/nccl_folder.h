#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cuda_double {

/// What the processes of a communicator tell each other: files in a folder. A file is there whole, or not at
/// all, and never changes.
class NcclFolder {
 public:
  /// A new folder under $TMPDIR or /tmp, whose path has less than `longest` characters; nothing where none
  /// can be made.
  static std::optional<NcclFolder> make(std::size_t longest);
  explicit NcclFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool exists() const;
  /// False when there is a file of this name. The file has first `head`, then `rest`.
  bool write(const std::string& name, const void* head, std::size_t head_bytes, const void* rest = nullptr,
             std::size_t rest_bytes = 0) const;
  bool has(const std::string& name) const;
  /// Bytes from `from` on. Ends the process where the file has fewer.
  void read(const std::string& name, std::size_t from, void* to, std::size_t bytes) const;
  void remove(const std::string& name) const;
  /// Names of files that begin with `prefix`.
  std::vector<std::string> names(const std::string& prefix) const;
  void remove_all() const;

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
};

}  // namespace cuda_double
