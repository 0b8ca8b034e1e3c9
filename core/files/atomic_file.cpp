#include "pleat/core/files/atomic_file.h"

#include <atomic>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/system/files.h"
#include "pleat/core/system/process.h"

namespace pleat {
namespace {

namespace fs = std::filesystem;
using system::FileKind;

constexpr std::string_view mark = ".pleat-";
constexpr std::string_view ending = ".tmp";
constexpr std::size_t longest_name = 200;  ///< of a temporary file's part of the name, of 255 bytes in all

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

/// Temporary files that nobody writes: of any file by their mark, and of `file`.
void remove_temporaries(const fs::path& folder, const std::string& file) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_temporary(entry->path().filename().string(), file)) system::remove_unless_marked(entry->path());
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

/// Where links lead, whether or not something is there yet.
fs::path followed(const std::string& op, const fs::path& path) {
  constexpr int most_links = 40;  // as many as Linux follows
  fs::path place = path;
  std::error_code error;
  for (int links = 0; !system::names_open_file(place) && fs::is_symlink(place, error); ++links) {
    const fs::path target = fs::read_symlink(place, error);
    if (!error && links == most_links) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    check<FileError>(!error, "{}: cannot follow the link '{}': {}", op, path.string(),
                     system::text_of(error));
    place = folder_of(place) / target;
  }
  return place;
}

}  // namespace

AtomicFile::AtomicFile(std::string op, fs::path path)
    : op_(std::move(op)), path_(std::move(path)), process_(system::process_id()) {
  check<FileError>(!path_.empty(), "{}: a file's name must not be empty", op_);
  path_ = followed(op_, path_);
  std::error_code error;
  if (const auto open = system::open_again(path_, error)) {
    if (error) fail("write", error);
    file_ = *open;
    regular_ = system::status_of(file_, error).kind == FileKind::regular;
    return;
  }
  const system::FileStatus old = system::status_of(path_, error);
  if (error) fail("write", error);
  if (old.kind == FileKind::pipe || old.kind == FileKind::device) {
    open_directly();
    return;
  }
  // A rename would put a plain file in the place of a disk or a socket.
  check<FileError>(old.kind == FileKind::none || old.kind == FileKind::regular,
                   "{}: '{}' is {}, not a regular file", op_, path_.string(),
                   old.kind == FileKind::folder ? "a folder"
                   : old.kind == FileKind::disk ? "a block device"
                                                : "a socket");
  open_beside();
  if (old.kind == FileKind::regular) system::set_permissions(file_, old.permissions);
}

void AtomicFile::open_beside() {
  const fs::path folder = folder_of(path_);
  const std::string name = path_.filename().string();
  remove_temporaries(folder, name);
  static std::atomic<unsigned> counter = 0;
  std::error_code error;
  do {
    temporary_ = folder / fmt::format("{}{}{}-{}{}", std::string_view(name).substr(0, longest_name), mark,
                                      process_, counter++, ending);
    file_ = system::create_marked(temporary_, error);
  } while (error == std::errc::file_exists);
  if (error) fail("write", error);
}

void AtomicFile::open_directly() {
  // Waits for no reader.
  std::error_code error;
  file_ = system::open_to_write(path_, error);
  check<FileError>(error != std::errc::no_such_device_or_address,
                   "{}: '{}' is a pipe that nobody reads from; start its reader first", op_, path_.string());
  if (error) fail("write", error);
  regular_ = false;
}

void AtomicFile::check_writable(const std::string& op, const fs::path& path) {
  std::error_code error;
  if (!system::names_open_file(path) && system::status_of(path, error).kind == FileKind::pipe) {
    // Closing it again would tell its reader that all was said.
    check<FileError>(system::may_write(path, error), "{}: cannot write '{}': {}", op, path.string(),
                     [&] { return system::text_of(error); });
    return;
  }
  const AtomicFile probe(op, path);
}

AtomicFile::~AtomicFile() {
  if (file_ == system::no_file) return;
  system::close(file_);
  // In a child of fork() it is still its parent's.
  std::error_code ignored;
  if (!temporary_.empty() && process_ == system::process_id()) fs::remove(temporary_, ignored);
}

void AtomicFile::remove_leftovers(const fs::path& folder) { remove_temporaries(folder, ""); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const std::error_code error = system::write(file_, bytes, regular_)) fail("write", error);
}

void AtomicFile::commit() {
  // What is no file on a disk cannot be flushed to one.
  if (const std::error_code error = system::flush(file_); error && regular_) fail("flush", error);
  if (temporary_.empty()) return;
  if (const std::error_code error = system::replace(temporary_, path_)) fail("replace", error);
  temporary_.clear();
}

void AtomicFile::fail(const char* what, const std::error_code& error) const {
  std::string remedy;
  if (const auto limit = system::file_size_limit(); limit && error == std::errc::file_too_large)
    remedy =
        fmt::format("; this process may write {} a file: raise the limit (ulimit -f)", text_of_bytes(*limit));
  std::error_code ignored;
  if (error == std::errc::no_such_file_or_directory && !fs::exists(folder_of(path_), ignored))
    remedy = fmt::format("; make the folder '{}' first", folder_of(path_).string());
  pleat::fail<FileError>(
      "{}: cannot {} '{}': {}{}", op_, what, path_.string(),
      error == std::errc::timed_out ? "nobody took anything from it for 60 s" : system::text_of(error),
      remedy);
}

void write_file(const std::string& op, const fs::path& path, std::string_view text) {
  AtomicFile file(op, path);
  file.write(text);
  file.commit();
}

}  // namespace pleat
