#pragma once

#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pleat_test {

/// A directory of its own for a test case, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    // Tests run side by side, also of different builds.
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("pleat_test_" + std::to_string(random()) + "_" + std::to_string(random()));
    std::filesystem::create_directory(path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The bytes of a file; empty when there is none.
inline std::vector<unsigned char> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string read_text(const std::filesystem::path& path) {
  const auto bytes = read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

/// Makes or replaces a file.
inline void write_bytes(const std::filesystem::path& path, std::span<const unsigned char> bytes) {
  // Some file systems write a file out when it is truncated and closed: a new one costs no wait for the disk.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  write_bytes(path, std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace pleat_test
