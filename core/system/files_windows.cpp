#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <windows.h>

#include "pleat/core/system/files.h"

namespace pleat::system {
namespace {

/// What others may do with a file that is open here; without DELETE in an access of theirs, so do all others.
constexpr DWORD all_may = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

constexpr std::size_t longest_name = 255;  ///< of a file in its folder

std::error_code code_of(DWORD error) { return {static_cast<int>(error), std::system_category()}; }
HANDLE handle_of(File file) { return reinterpret_cast<HANDLE>(file); }

/// The error of a call that gave `result`.
template <class Result>
Result checked(Result result, bool right, std::error_code& error) {
  error = right ? std::error_code() : code_of(::GetLastError());
  return result;
}

File open(const Path& path, DWORD access, DWORD sharing, DWORD disposition, DWORD flags,
          std::error_code& error) {
  HANDLE handle = ::CreateFileW(path.c_str(), access, sharing, nullptr, disposition, flags, nullptr);
  return reinterpret_cast<File>(checked(handle, handle != INVALID_HANDLE_VALUE, error));
}

/// Programs that look through files (search, virus scanners) have each new one open for a moment.
template <class Try>
std::error_code patiently(const Try& once) {
  using namespace std::chrono_literals;
  for (int i = 0;; ++i) {
    if (once()) return {};
    const DWORD error = ::GetLastError();
    if ((error != ERROR_ACCESS_DENIED && error != ERROR_SHARING_VIOLATION) || i == 100) return code_of(error);
    std::this_thread::sleep_for(10ms);
  }
}

/// As POSIX has it: who has the old file open keeps it. Since Windows 10, on NTFS.
bool rename_over_open(const Path& from, const Path& to) {
  constexpr auto rename_ex = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  constexpr DWORD flags = 1 | 2;  // FILE_RENAME_FLAG_REPLACE_IF_EXISTS, FILE_RENAME_FLAG_POSIX_SEMANTICS
  std::error_code error;
  const std::wstring name = std::filesystem::absolute(to, error).wstring();
  const std::size_t bytes = name.size() * sizeof(wchar_t);
  std::vector<std::byte> memory(sizeof(FILE_RENAME_INFO) + bytes);
  auto* info = reinterpret_cast<FILE_RENAME_INFO*>(memory.data());
  std::memcpy(&info->ReplaceIfExists, &flags, sizeof flags);  // the flags stand there
  info->FileNameLength = static_cast<DWORD>(bytes);
  std::memcpy(info->FileName, name.data(), bytes);
  const File file = open(from, DELETE | SYNCHRONIZE, all_may, OPEN_EXISTING, 0, error);
  if (file == no_file) return false;
  const bool done =
      ::SetFileInformationByHandle(handle_of(file), rename_ex, info, static_cast<DWORD>(memory.size())) != 0;
  ::CloseHandle(handle_of(file));
  return done;
}

}  // namespace

std::string text_of(const std::error_code& error) {
  if (error.value() == ERROR_SHARING_VIOLATION && error.category() == std::system_category())
    return "Another program has it open";
  if (error.value() == ERROR_USER_MAPPED_FILE && error.category() == std::system_category())
    return "A program has it open or mapped, perhaps this one (a loaded Inference maps its file); write to "
           "another name, or let go of it first";
  return error.default_error_condition().message();
}

FileStatus status_of(const Path& path, std::error_code& error) {
  // Of which it says that there is none.
  if (path.filename().native().size() > longest_name) {
    error = std::make_error_code(std::errc::filename_too_long);
    return {};
  }
  const File file = open(path, 0, all_may, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, error);
  if (error == std::errc::no_such_file_or_directory) error.clear();
  if (file == no_file) return {};
  const FileStatus status = status_of(file, error);
  close(file);
  return status;
}

FileStatus status_of(File file, std::error_code& error) {
  error.clear();
  const DWORD type = ::GetFileType(handle_of(file));
  if (type != FILE_TYPE_DISK) return {type == FILE_TYPE_PIPE ? FileKind::pipe : FileKind::device};
  BY_HANDLE_FILE_INFORMATION about{};
  const bool known = ::GetFileInformationByHandle(handle_of(file), &about) != 0;
  if (!checked(known, known, error)) return {FileKind::disk};
  const bool is_folder = (about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  return {is_folder ? FileKind::folder : FileKind::regular,
          static_cast<int64_t>(about.nFileSizeHigh) << 32 | about.nFileSizeLow};
}

void close(File file) { ::CloseHandle(handle_of(file)); }

File open_to_read(const Path& path, std::error_code& error) {
  return open(path, GENERIC_READ, all_may, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, error);
}

std::size_t read_at(File file, int64_t offset, std::span<std::byte> buffer, std::error_code& error) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset & 0xFFFFFFFF);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD some = 0;
  const auto size = static_cast<DWORD>(std::min<std::size_t>(buffer.size(), 1 << 30));
  const bool right = ::ReadFile(handle_of(file), buffer.data(), size, &some, &place) != 0;
  return checked(some, right || ::GetLastError() == ERROR_HANDLE_EOF, error);
}

std::shared_ptr<std::byte> map(File file, std::size_t, std::error_code& error) {
  HANDLE mapping = ::CreateFileMappingW(handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (checked(mapping, mapping != nullptr, error) == nullptr) return nullptr;
  void* const place = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
  checked(place, place != nullptr, error);
  ::CloseHandle(mapping);  // the view keeps it
  if (place == nullptr) return nullptr;
  return {static_cast<std::byte*>(place), [](std::byte* bytes) { ::UnmapViewOfFile(bytes); }};
}

// Who removes leftovers asks for the right to write, which another has.
File create_marked(const Path& path, std::error_code& error) {
  return open(path, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL,
              error);
}

void remove_unless_marked(const Path& path) {
  std::error_code error;
  const File file = open(path, GENERIC_WRITE | DELETE, 0, OPEN_EXISTING,
                         FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_OPEN_REPARSE_POINT, error);
  if (file != no_file) close(file);
}

void set_permissions(File, unsigned) {}

File open_to_write(const Path& path, std::error_code& error) {
  return open(path, GENERIC_WRITE, all_may, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, error);
}

bool may_write(const Path&, std::error_code&) { return true; }  // it is seen when it is opened

// Windows has no names for what is open.
std::optional<File> open_again(const Path&, std::error_code&) { return {}; }
bool names_open_file(const Path&) { return false; }

std::error_code write(File file, std::span<const std::byte> bytes, bool regular) {
  while (!bytes.empty()) {
    const std::size_t most = regular ? 1 << 30 : 1 << 12;
    DWORD some = 0;
    const bool right = ::WriteFile(handle_of(file), bytes.data(),
                                   static_cast<DWORD>(std::min(bytes.size(), most)), &some, nullptr) != 0;
    if (!right) return code_of(::GetLastError());
    bytes = bytes.subspan(some);
  }
  return {};
}

std::error_code flush(File file) {
  return ::FlushFileBuffers(handle_of(file)) != 0 ? std::error_code() : code_of(::GetLastError());
}

// Of a file that is mapped Windows says that access is denied, or that it is shared.
std::error_code replace(const Path& from, const Path& to) {
  const std::error_code error = patiently([&] {
    return rename_over_open(from, to) ||
           ::MoveFileExW(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
  });
  const bool denied =
      error.value() == ERROR_ACCESS_DENIED &&
      (::GetFileAttributesW(to.c_str()) & (FILE_ATTRIBUTE_READONLY | FILE_ATTRIBUTE_DIRECTORY)) == 0;
  return denied || error.value() == ERROR_SHARING_VIOLATION ? code_of(ERROR_USER_MAPPED_FILE) : error;
}

std::optional<int64_t> file_size_limit() { return {}; }

std::shared_ptr<void> lock(const Path& path, std::error_code& error) {
  const File file = open(path, GENERIC_WRITE | DELETE, 0, OPEN_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, error);
  if (error.value() == ERROR_SHARING_VIOLATION)
    error = std::make_error_code(std::errc::device_or_resource_busy);
  if (file == no_file) return nullptr;
  return {nullptr, [file](void*) { close(file); }};
}

}  // namespace pleat::system
