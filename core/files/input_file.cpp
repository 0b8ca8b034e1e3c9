#include "pleat/core/files/input_file.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/system/files.h"

namespace pleat {
namespace {

constexpr int64_t least_default_limit = int64_t{256} << 20;
constexpr int64_t default_ratio = 100;

int64_t limit_for(const std::string& name, int64_t size, int64_t wanted) {
  check<ValueError>(wanted >= 0, "{}: memory_limit must be a number of bytes, or 0 for the default, got {}",
                    name, wanted);
  if (wanted > 0) return wanted;
  if (size > std::numeric_limits<int64_t>::max() / default_ratio) return size;
  return std::max(least_default_limit, size * default_ratio);
}

// What is no regular file, and what to do about it.
const char* kind_of(system::FileKind kind) {
  switch (kind) {
    case system::FileKind::folder:
      return "a folder; name a file in it";
    case system::FileKind::pipe:
      return "a pipe; write what comes out of it into a file first";
    case system::FileKind::socket:
      return "a socket; write what comes out of it into a file first";
    default:
      return "a device; copy what it holds into a file first";
  }
}

}  // namespace

InputFile::InputFile(std::string_view op, const std::filesystem::path& path, ReadOptions options)
    : name_(fmt::format("{}: '{}'", op, path.string().c_str())) {
  // A path with a zero byte would open the file before that byte.
  check<FileError>(path.native().find('\0') == std::filesystem::path::string_type::npos,
                   "{}: cannot open: no path has a zero byte", name_);
  const auto check_kind = [&](const system::FileStatus& status) {
    check<FileError>(status.kind == system::FileKind::none || status.kind == system::FileKind::regular,
                     "{}: is not a regular file, but {}", name_, kind_of(status.kind));
  };
  std::error_code error, ignored;
  file_ = system::open_to_read(path, error);
  if (error) {
    check_kind(system::status_of(path, ignored));
    fail<FileError>("{}: cannot open: {}", name_, system::text_of(error));
  }
  try {
    const system::FileStatus status = system::status_of(file_, error);
    if (error) fail<FileError>("{}: cannot open: {}", name_, system::text_of(error));
    check_kind(status);
    size_ = status.size;
    memory_limit_ = limit_for(name_, size_, options.memory_limit);
  } catch (...) {
    system::close(file_);
    throw;
  }
}

InputFile::~InputFile() { system::close(file_); }

void InputFile::read_at(int64_t offset, std::span<std::byte> buffer, std::string_view what) const {
  const auto size = static_cast<int64_t>(buffer.size());
  if (offset < 0 || offset > size_ || size > size_ - offset) {
    fail_at(offset, fmt::format("truncated: {} needs {} bytes, but the file has {}", what, size, size_));
  }
  std::size_t done = 0;
  while (done < buffer.size()) {
    std::error_code error;
    const std::size_t some =
        system::read_at(file_, offset + static_cast<int64_t>(done), buffer.subspan(done), error);
    if (error) fail_at(offset, fmt::format("cannot read {}: {}", what, system::text_of(error)));
    if (some == 0) fail_at(offset, fmt::format("the file became shorter while {} was read", what));
    done += some;
  }
}

std::string InputFile::read_text(int64_t expansion) const {
  if (size_ > memory_limit_ / expansion)
    fail_at(0, above_memory_limit(fmt::format("what a text of {} becomes", text_of_bytes(size_)),
                                  expansion * std::min(size_, int64_t{1} << 50), memory()));
  std::string text(static_cast<std::size_t>(size_), '\0');
  read_at(0, std::as_writable_bytes(std::span(text)), "the text");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

std::shared_ptr<std::byte> InputFile::map() const {
  if (size_ == 0) return nullptr;
  std::error_code error;
  auto bytes = system::map(file_, static_cast<std::size_t>(size_), error);
  if (error) fail_at(0, fmt::format("cannot map it: {}", system::text_of(error)));
  return bytes;
}

void InputFile::fail_at(int64_t offset, const std::string& cause) const {
  fail<FileError>("{}, byte {}: {}", name_, offset, cause);
}

std::string above_memory_limit(std::string_view what, int64_t bytes, MemoryBudget memory) {
  const std::string before =
      memory.taken > 0 ? fmt::format(", beside the {} taken before it,", text_of_bytes(memory.taken)) : "";
  return fmt::format(
      "{} takes {}{} more than the {} that may be taken for this file; if you trust it, raise the limit: "
      "{{.memory_limit = {}}}",
      what, text_of_bytes(bytes), before.empty() ? "," : before, text_of_bytes(memory.limit),
      bytes + memory.taken);
}

void rethrow_naming(const std::string& name) {
  const auto named = [&](const std::exception& error) {
    const std::string_view text = error.what();
    return text.starts_with(name) ? std::string(text) : fmt::format("{}: {}", name, text);
  };
  try {
    throw;
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(named(error));
  } catch (const FileError&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail<OutOfMemoryError>("{}: no memory is left for what it holds", name);
  } catch (const std::length_error&) {
    fail<OutOfMemoryError>("{}: holds more than any memory", name);
  } catch (const std::exception& error) {
    throw FileError(named(error));
  }
}

}  // namespace pleat
