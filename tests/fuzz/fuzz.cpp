#include "pleat/tests/fuzz/fuzz.h"

#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "pleat/core/tensor/copy.h"

namespace pleat::fuzz {

InputAsFile::InputAsFile(const uint8_t* data, std::size_t size) : descriptor_(::memfd_create("input", 0)) {
  if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
    std::perror("fuzz: no file in memory");
    std::exit(2);
  }
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

InputAsFile::~InputAsFile() { ::close(descriptor_); }

const std::filesystem::path& scratch_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::error_code error;
      const std::filesystem::path memory = "/dev/shm";
      const auto parent =
          std::filesystem::is_directory(memory, error) ? memory : std::filesystem::temp_directory_path();
      path = parent / ("pleat_fuzz_" + std::to_string(::getpid()));
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor x = ops::to_format(a, MemoryFormat::contiguous);
  const Tensor y = ops::to_format(b, MemoryFormat::contiguous);
  const auto bytes = static_cast<std::size_t>(x.numel() * size_of(x.dtype()));
  return bytes == 0 || std::memcmp(x.raw(), y.raw(), bytes) == 0;
}

}  // namespace pleat::fuzz
