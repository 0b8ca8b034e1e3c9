// One checkpoint as a safetensors file. Its metadata entry is JSON with a checksum of each tensor, and has a
// checksum itself.
#include <bit>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>
#include <zlib.h>

#include "pleat/core/base/format.h"
#include "pleat/core/files/json_input.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/io/safetensors.h"
#include "pleat/train/checkpoint.h"

namespace pleat::train {
namespace {

using nlohmann::json;

constexpr const char* entry = "pleat.checkpoint";
constexpr const char* entry_checksum = "pleat.checkpoint.crc32";
constexpr int version = 1;

uint32_t checksum(const void* bytes, std::size_t size, uint32_t before = 0) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(bytes), size));
}

/// Of name, type, shape and elements.
uint32_t checksum(const std::string& name, const Tensor& tensor) {
  std::string text = name + ' ' + std::string(pleat::name(tensor.dtype()));
  for (const int64_t size : tensor.shape()) text += ' ' + std::to_string(size);
  const Tensor dense = ops::to_format(tensor, MemoryFormat::contiguous);
  return checksum(dense.raw(), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype())),
                  checksum(text.data(), text.size()));
}

std::string checksum_text(const std::string& text) {
  return std::to_string(checksum(text.data(), text.size()));
}

/// By the names that they have in the file.
nn::StateDict joined(const std::map<std::string, nn::StateDict>& parts) {
  nn::StateDict tensors;
  for (const auto& [part, state] : parts)
    for (const auto& [key, tensor] : state) tensors.emplace(part + '/' + key, tensor);
  return tensors;
}

/// What the metadata entry says.
struct Description {
  Checkpoint checkpoint;  ///< its parts are empty
  std::vector<uint32_t> checksums;
};

/// JSON has no infinite numbers; NaN is none.
json json_of(const std::optional<double>& metric) {
  if (!metric || std::isnan(*metric)) return nullptr;
  return std::isfinite(*metric) ? json(*metric) : json(*metric > 0 ? "inf" : "-inf");
}
std::optional<double> metric_of(const json& metric) {
  if (metric.is_number()) return metric.get<double>();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (metric == "inf") return infinity;
  if (metric == "-inf") return -infinity;
  return std::nullopt;
}

Description described_by(const std::string& where, std::map<std::string, std::string> metadata) {
  const auto found = metadata.find(entry);
  check<FileError>(found != metadata.end(),
                   "{}: is no checkpoint, but a safetensors file without the entry \"{}\"; load weights by "
                   "load_state_dict(io::read_safetensors(file).tensors)",
                   where, entry);
  const std::string& text = found->second;
  check<FileError>(metadata[entry_checksum] == checksum_text(text),
                   "{}: is damaged: the checksum of its metadata differs", where);
  try {
    const json described = parse_json<json>(text, where);
    check<FileError>(described.at("version") == version,
                     "{}: is a checkpoint of version {}, but this Pleat reads version {}", where,
                     described.at("version").dump(), version);
    Description result{.checkpoint = {}, .checksums = described.at("crc32").get<std::vector<uint32_t>>()};
    Checkpoint& checkpoint = result.checkpoint;
    checkpoint.step = described.at("step").get<int64_t>();
    checkpoint.metric = metric_of(described.at("metric"));
    checkpoint.metadata = described.at("metadata").get<std::map<std::string, std::string>>();
    for (const auto& part : described.at("parts")) checkpoint.parts[part.get<std::string>()];
    return result;
  } catch (const json::exception& error) {
    fail<FileError>("{}: is no checkpoint: {}", where, json_cause(error));
  }
}

/// Moves the tensors into the parts of the checkpoint.
void take_tensors(const std::string& where, Description& description, const nn::StateDict& tensors) {
  const std::vector<uint32_t>& sums = description.checksums;
  check<FileError>(sums.size() == tensors.size(), "{}: is damaged: it has {} tensors of {}", where,
                   tensors.size(), sums.size());
  auto sum = sums.begin();
  for (const auto& [name, tensor] : tensors) {
    check<FileError>(*sum++ == checksum(name, tensor), "{}: is damaged: the checksum of {} differs", where,
                     name);
    const std::size_t slash = name.find('/');
    const auto part = description.checkpoint.parts.find(name.substr(0, slash));
    check<FileError>(slash != std::string::npos && part != description.checkpoint.parts.end(),
                     "{}: is damaged: {} belongs to no part", where, name);
    part->second.emplace(name.substr(slash + 1), tensor);
  }
}

std::string named(const char* function, const std::filesystem::path& file) {
  return fmt::format("{}: '{}'", function, file.string());
}

}  // namespace

Checkpoint read_checkpoint(const std::filesystem::path& file) {
  // As large as the run that wrote it had memory for.
  const ReadOptions whole{.memory_limit = std::numeric_limits<int64_t>::max()};
  const std::string where = named("read_checkpoint", file);
  io::SafetensorsContent content = io::read_safetensors(file, whole);
  Description description = described_by(where, std::move(content.metadata));
  take_tensors(where, description, content.tensors);
  description.checkpoint.file = file;
  return std::move(description.checkpoint);
}

Checkpoint read_checkpoint_metadata(const std::filesystem::path& file) {
  Checkpoint checkpoint =
      described_by(named("read_checkpoint_metadata", file), io::read_safetensors_metadata(file)).checkpoint;
  checkpoint.file = file;
  return checkpoint;
}

void write_checkpoint(const Checkpoint& checkpoint) {
  const nn::StateDict tensors = joined(checkpoint.parts);
  json parts = json::array(), sums = json::array();
  for (const auto& [part, state] : checkpoint.parts) parts.push_back(part);
  for (const auto& [name, tensor] : tensors) sums.push_back(checksum(name, tensor));
  try {
    const std::string text = json{
        {"version", version},
        {"step", checkpoint.step},
        {"metric", json_of(checkpoint.metric)},
        {"metadata", checkpoint.metadata},
        {"parts", parts},
        {"crc32", sums}}.dump();
    io::write_safetensors(checkpoint.file, tensors, {{entry, text}, {entry_checksum, checksum_text(text)}});
  } catch (const json::exception& error) {
    fail<ValueError>("write_checkpoint: names and metadata must be UTF-8: {}", error.what());
  }
}

}  // namespace pleat::train
