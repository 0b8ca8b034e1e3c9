#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>

#include "pleat/core/base/error.h"
#include "pleat/core/files/read_options.h"
#include "pleat/core/memory/allocator.h"
#include "pleat/core/tensor/tensor.h"

/// What every target uses: it gives a reader bytes, and anything but a result or an error of Pleat ends the
/// process, by which libFuzzer, or driver.cpp, notices.

namespace pleat::fuzz {

/// What a reader may take here: an input has kilobytes.
inline constexpr int64_t memory_limit = 16 << 20;
inline constexpr ReadOptions limited{.memory_limit = memory_limit};

[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

/// A property that must hold for every input.
inline void require(bool holds, const char* what) {
  if (!holds) finding(what);
}

/// Whether `body` accepts its input. Memory that ran out is a finding, since no input here is large.
template <class Body>
bool accepts(const Body& body) {
  reset_peak_statistics();
  const int64_t before = allocator_statistics().allocated;
  bool accepted = false;
  try {
    body();
    accepted = true;
  } catch (const OutOfMemoryError& error) {
    finding(std::string("no memory: ") + error.what());
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error says nothing");
  } catch (const std::exception& error) {
    finding(std::string("not an error of Pleat: ") + typeid(error).name() + ": " + error.what());
  }
  require(allocator_statistics().peak - before <= memory_limit + (1 << 20), "more memory than the limit");
  return accepted;
}

/// Bytes as a regular file, without one on a disk.
class InputAsFile {
 public:
  InputAsFile(const uint8_t* data, std::size_t size);
  ~InputAsFile();
  InputAsFile(const InputAsFile&) = delete;
  InputAsFile& operator=(const InputAsFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// A folder in memory that lives as long as the process, for what is written.
const std::filesystem::path& scratch_folder();

inline std::string text_of(const uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The same type, shape and bytes: NaN and -0 count.
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace pleat::fuzz
