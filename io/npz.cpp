#include "pleat/io/npz.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/io/looks_like.h"
#include "pleat/io/npy_stream.h"
#include "pleat/io/zip.h"

namespace pleat::io {

namespace {

/// Whether the entry is a .npy file, which its content shows where its name does not.
bool begins_as_npy(const InputFile& file, const ZipEntry& entry) {
  std::array<std::byte, npy_magic.size()> start;
  const bool is_known = entry.method == 0 || entry.method == 8;
  if (!is_known || entry.size < static_cast<int64_t>(start.size())) return false;
  open_zip_entry(file, entry, file.memory())->read_exactly(start, "the start of an entry");
  return std::memcmp(start.data(), npy_magic.data(), start.size()) == 0;
}

}  // namespace

struct NpzReader::State {
  State(const std::filesystem::path& path, ReadOptions options) : file("read_npz", path, options) {}
  InputFile file;
  std::vector<std::string> names;
  std::map<std::string, ZipEntry> entries;
};

NpzReader::NpzReader(const std::filesystem::path& path, ReadOptions options) {
  constexpr std::string_view suffix = ".npy";
  auto state = std::make_shared<State>(path, options);
  reading(state->file.name(), [&] {
    const InputFile& file = state->file;
    std::vector<ZipEntry> entries = read_zip_directory(file);
    for (ZipEntry& entry : entries) {
      const bool is_named = entry.name.ends_with(suffix);
      if (!is_named && !begins_as_npy(file, entry)) continue;
      const int64_t at = entry.header_offset;
      std::string name = entry.name.substr(0, entry.name.size() - (is_named ? suffix.size() : 0));
      state->names.push_back(name);
      if (!state->entries.emplace(name, std::move(entry)).second)
        file.fail_at(at, fmt::format("there are two arrays {}, with .npy and without", printable(name)));
    }
    if (state->names.empty() && !entries.empty())
      file.fail_at(0, "none of its entries is a .npy file" + looks_like(file));
  });
  state_ = std::move(state);
}

const std::vector<std::string>& NpzReader::names() const { return state_->names; }

bool NpzReader::contains(const std::string& name) const { return state_->entries.contains(name); }

Tensor NpzReader::read(const std::string& name) const { return read(name, 0); }

Tensor NpzReader::read(const std::string& name, int64_t taken) const {
  const auto found = state_->entries.find(name);
  if (found == state_->entries.end()) {
    constexpr std::size_t most_named = 20;
    const std::vector<std::string>& names = state_->names;
    const auto shown = std::span(names).first(std::min(names.size(), most_named));
    pleat::fail<ValueError>("{}: has no array '{}', but: {}{}", state_->file.name(), name,
                            fmt::join(shown, ", "), names.size() > most_named ? " ..." : "");
  }
  return reading(state_->file.name(), [&] {
    const auto source = open_zip_entry(state_->file, found->second, {state_->file.memory().limit, taken});
    return read_npy(*source);
  });
}

std::map<std::string, Tensor> read_npz(const std::filesystem::path& path, ReadOptions options) {
  const NpzReader reader(path, options);
  // Before the first is read: small files of zeros hold more than the archive.
  const InputFile& file = reader.state_->file;
  int64_t all = 0;
  for (const auto& [name, entry] : reader.state_->entries)
    all += std::min(entry.size, std::numeric_limits<int64_t>::max() - all);
  if (all > file.memory().limit)
    file.fail_at(0, above_memory_limit("what the archive holds", all, file.memory()));
  int64_t taken = 0;
  std::map<std::string, Tensor> arrays;
  for (const std::string& name : reader.names()) {
    const Tensor array = reader.read(name, taken);
    taken += array.numel() * size_of(array.dtype());
    arrays.emplace(name, array);
  }
  return arrays;
}

}  // namespace pleat::io
