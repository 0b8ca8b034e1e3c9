#include "pleat/io/npz.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/io/npy_stream.h"
#include "pleat/io/zip.h"

namespace pleat::io {

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
    for (ZipEntry& entry : read_zip_directory(state->file)) {
      if (!entry.name.ends_with(suffix)) continue;
      std::string name = entry.name.substr(0, entry.name.size() - suffix.size());
      state->names.push_back(name);
      state->entries.emplace(std::move(name), std::move(entry));
    }
  });
  state_ = std::move(state);
}

const std::vector<std::string>& NpzReader::names() const { return state_->names; }

bool NpzReader::contains(const std::string& name) const { return state_->entries.contains(name); }

Tensor NpzReader::read(const std::string& name) const { return read(name, 0); }

Tensor NpzReader::read(const std::string& name, std::int64_t taken) const {
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
  std::int64_t taken = 0;
  std::map<std::string, Tensor> arrays;
  for (const std::string& name : reader.names()) {
    const Tensor array = reader.read(name, taken);
    taken += array.numel() * size_of(array.dtype());
    arrays.emplace(name, array);
  }
  return arrays;
}

}  // namespace pleat::io
