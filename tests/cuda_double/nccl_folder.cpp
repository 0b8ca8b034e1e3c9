#include "nccl_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "finding.h"
#include <unistd.h>

namespace cuda_double {
namespace {

std::string own_name(const std::string& file) {
  static unsigned number = 0;
  return file + ".of." + std::to_string(getpid()) + "." + std::to_string(++number);
}

}  // namespace

std::optional<NcclFolder> NcclFolder::make(std::size_t longest) {
  const char* const given = std::getenv("TMPDIR");
  for (const std::string& parent : {std::string(given != nullptr ? given : "/tmp"), std::string("/tmp")}) {
    std::string path = parent + "/pleat_nccl_XXXXXX";
    if (path.size() < longest && mkdtemp(path.data()) != nullptr) return NcclFolder(path);
  }
  return {};
}

bool NcclFolder::exists() const {
  std::error_code ignored;
  return std::filesystem::is_directory(path_, ignored);
}

bool NcclFolder::write(const std::string& name, const void* head, std::size_t head_bytes, const void* rest,
                       std::size_t rest_bytes) const {
  const std::string unfinished = own_name(file(name));
  std::ofstream out(unfinished, std::ios::binary);
  out.write(static_cast<const char*>(head), static_cast<std::streamsize>(head_bytes));
  if (rest_bytes > 0) out.write(static_cast<const char*>(rest), static_cast<std::streamsize>(rest_bytes));
  out.close();
  if (!out) finding("NCCL: cannot write " + unfinished);
  // Unlike rename, link leaves alone what is there.
  const bool is_new = link(unfinished.c_str(), file(name).c_str()) == 0;
  const int error = errno;
  unlink(unfinished.c_str());
  if (!is_new && error != EEXIST) finding("NCCL: cannot write " + file(name) + ": " + std::strerror(error));
  return is_new;
}

bool NcclFolder::has(const std::string& name) const { return access(file(name).c_str(), F_OK) == 0; }

void NcclFolder::read(const std::string& name, std::size_t from, void* to, std::size_t bytes) const {
  std::ifstream in(file(name), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(from));
  in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (!in) finding("NCCL: cannot read " + file(name));
}

void NcclFolder::remove(const std::string& name) const { unlink(file(name).c_str()); }

std::vector<std::string> NcclFolder::names(const std::string& prefix) const {
  std::vector<std::string> result;
  std::error_code ignored;
  // Another process may remove the folder meanwhile.
  std::filesystem::directory_iterator entry(path_, ignored);
  for (; entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && name.find(".of.") == std::string::npos) result.push_back(std::move(name));
  }
  return result;
}

void NcclFolder::remove_all() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cuda_double
