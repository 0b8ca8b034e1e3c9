#include "pleat/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/storage.h"
#include "pleat/io/safetensors_header.h"
#include "pleat/io/safetensors_map.h"

namespace pleat::io {
namespace {

using nlohmann::json;

// --- reading

// Codes of 8 or 4 bits, the low ones of a byte first, as numbers.
void read_float_codes(FileSource& source, const SafetensorsType& type, std::span<float> out) {
  const std::size_t codes_a_byte = 8 / static_cast<std::size_t>(type.bits);
  const unsigned mask = (1U << type.bits) - 1;
  std::array<std::byte, 1 << 14> buffer;
  for (std::size_t done = 0; done < out.size();) {
    const auto part = std::span(buffer).first(std::min(buffer.size(), (out.size() - done) / codes_a_byte));
    source.read_exactly(part, "a tensor");
    for (const std::byte byte : part)
      for (std::size_t i = 0; i < codes_a_byte; ++i)
        out[done++] =
            type.values[std::to_integer<unsigned>(byte) >> (static_cast<int>(i) * type.bits) & mask];
  }
}

Tensor read_tensor(FileSource& source, const SafetensorsEntry& entry) {
  const Tensor tensor = empty(entry.result_shape(), {.dtype = entry.type->dtype(), .device = Device()});
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (entry.type->as == SafetensorsType::As::float_code) {
    read_float_codes(source, *entry.type, {tensor.data<float>(), count});
  } else {
    read_elements(source, entry.type->stored, tensor.raw(), count);
  }
  return tensor;
}

// Whether its elements in the file are those of the tensor, in a place where they can be read.
bool is_readable_in_place(const SafetensorsEntry& entry, const std::byte* bytes) {
  const auto size = static_cast<std::size_t>(size_of(entry.type->dtype()));
  return entry.type->as == SafetensorsType::As::stored && entry.type->dtype() != boolean &&
         entry.type->conversion().empty() && reinterpret_cast<std::uintptr_t>(bytes) % size == 0;
}

// Tensors lie where the file is mapped, if it is.
SafetensorsContent read_content(const InputFile& file, bool maps) {
  return reading(file.name(), [&] {
    FileSource source(file);
    SafetensorsHeader header = read_safetensors_header(file, source);
    const int64_t data = source.position();
    const std::shared_ptr<std::byte> mapped = maps ? file.map() : nullptr;
    const auto place = [&](const SafetensorsEntry& entry) {
      return data + static_cast<int64_t>(entry.begin);
    };
    const auto in_place = [&](const SafetensorsEntry& entry) {
      return maps && is_readable_in_place(entry, mapped.get() + place(entry));
    };
    int64_t bytes = 0;
    for (const SafetensorsEntry& entry : header.entries)
      if (!in_place(entry)) bytes = checked_add(bytes, entry.result_bytes(), "read_safetensors");
    source.check_memory(bytes, "what the tensors become");
    SafetensorsContent content;
    content.metadata = std::move(header.metadata);
    for (const SafetensorsEntry& entry : header.entries) {
      const auto size = static_cast<int64_t>(entry.end - entry.begin);
      FileSource part(file, place(entry), size);
      content.tensors.emplace(
          entry.name, in_place(entry)
                          ? make_tensor(std::make_shared<Storage>(
                                            std::shared_ptr<std::byte>(mapped, mapped.get() + place(entry)),
                                            size, Device()),
                                        entry.shape, dense_strides(entry.shape), 0, entry.type->dtype())
                          : read_tensor(part, entry));
      if (const std::string conversion = entry.type->conversion(); !conversion.empty())
        content.converted.emplace(entry.name, conversion);
    }
    return content;
  });
}

// --- writing

std::string quoted(const std::string& name) { return json(name).dump(); }

// Tensors of whole lines of a cache start at one, where the data do.
constexpr std::size_t line_bytes = 64;

std::size_t byte_count(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()));
}

// The order in which tensors are written: whole lines first, then large elements, so that each starts at a
// multiple of its element size.
std::vector<std::pair<std::string, Tensor>> ordered(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::pair<std::string, Tensor>> list(tensors.begin(), tensors.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const Tensor& t) {
      return byte_count(t) % line_bytes == 0 ? line_bytes : static_cast<std::size_t>(size_of(t.dtype()));
    };
    return rank(a.second) > rank(b.second);
  });
  return list;
}

}  // namespace

SafetensorsContent read_safetensors(const std::filesystem::path& path, ReadOptions options) {
  return read_content(InputFile("read_safetensors", path, options), false);
}

SafetensorsContent map_safetensors(std::string_view op, const std::filesystem::path& path,
                                   ReadOptions options) {
  return read_content(InputFile(op, path, options), true);
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path,
                                                             ReadOptions options) {
  const InputFile file("read_safetensors_metadata", path, options);
  return reading(file.name(), [&] {
    FileSource source(file);
    return read_safetensors_header(file, source).metadata;
  });
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check<ValueError>(!tensors.contains(safetensors_metadata),
                    "write_safetensors: the name '{}' is taken by the format", safetensors_metadata);
  const auto list = ordered(tensors);
  std::string text = "{";
  std::size_t at = 0;
  try {
    if (!metadata.empty()) text += quoted(safetensors_metadata) + ":" + json(metadata).dump();
    for (const auto& [name, tensor] : list) {
      const std::size_t end = at + byte_count(tensor);
      text += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                          text.size() > 1 ? "," : "", quoted(name), safetensors_type_name(tensor.dtype()),
                          json(tensor.shape()).dump(), at, end);
      at = end;
    }
  } catch (const json::exception& error) {
    pleat::fail<ValueError>("write_safetensors: names and metadata must be UTF-8: {}", error.what());
  }
  text += '}';
  std::array<std::byte, 8> length;
  text.append((2 * line_bytes - length.size() - text.size() % line_bytes) % line_bytes, ' ');
  check<ValueError>(text.size() <= most_safetensors_header,
                    "write_safetensors: names and metadata need {} bytes, but at most {} are allowed",
                    text.size(), most_safetensors_header);

  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(text.size() >> (8 * i) & 0xff);
  AtomicFile file("write_safetensors", path);
  file.write(length);
  file.write(text);
  for (const auto& [name, tensor] : list) {
    const Tensor dense = ops::to_format(ops::to_device(tensor, Device{}), MemoryFormat::contiguous);
    file.write({dense.raw(), byte_count(dense)});
  }
  file.commit();
}

}  // namespace pleat::io
