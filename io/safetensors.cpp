#include "pleat/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "pleat/core/atomic_file.h"
#include "pleat/core/checked_math.h"
#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/io/byte_source.h"

static_assert(std::endian::native == std::endian::little,
              "the readers and writers of io/ copy elements as they lie");

namespace pleat::io {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // as the format's reference implementation
constexpr const char* kMetadata = "__metadata__";

constexpr std::array<std::pair<DType, std::string_view>, 8> kTypes = {{{boolean, "BOOL"},
                                                                       {uint8, "U8"},
                                                                       {int32, "I32"},
                                                                       {int64, "I64"},
                                                                       {bfloat16, "BF16"},
                                                                       {float16, "F16"},
                                                                       {float32, "F32"},
                                                                       {float64, "F64"}}};

std::string_view type_name(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.first == dtype; })
      ->second;
}

struct Entry {
  std::string name;
  DType dtype = float32;
  Shape shape;
  std::uint64_t begin = 0;  // from the end of the header
  std::uint64_t end = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(const File& file) : file_(file) {
    std::array<std::byte, kLengthBytes> length_bytes;
    file.read_at(0, length_bytes, "the header's length");
    const std::uint64_t length = little_endian(length_bytes);
    if (length > kLongestHeader) {
      file.fail_at(
          0, fmt::format("a header of {} bytes is too long; at most {} are allowed", length, kLongestHeader));
    }
    text_.resize(std::min(length, static_cast<std::uint64_t>(file.size())));
    if (length != text_.size())
      fail("truncated: the header needs {} bytes, but the file has {}", length, file.size());
    file.read_at(kLengthBytes, std::as_writable_bytes(std::span(text_)), "the header");
    parse();
  }

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The tensors in the order of their places in the file, which they fill.
  std::vector<Entry> entries() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    std::uint64_t at = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin != at) {
        fail(
            "tensor {} starts at byte {} of the data, but the one before ends at {}: they must follow each "
            "other "
            "without overlap or hole",
            printable(entry.name), entry.begin, at);
      }
      at = entry.end;
    }
    const std::uint64_t size = static_cast<std::uint64_t>(file_.size()) - data_offset();
    if (at > size)
      file_.fail_at(
          file_.size(),
          fmt::format("truncated: the tensors need {} bytes, but only {} follow the header", at, size));
    if (at < size) {
      file_.fail_at(static_cast<std::int64_t>(data_offset() + at),
                    fmt::format("the tensors end here, but {} more bytes follow", size - at));
    }
    return std::move(entries_);
  }

  std::uint64_t data_offset() const { return kLengthBytes + text_.size(); }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> message, Args&&... args) const {
    file_.fail_at(kLengthBytes, "header: " + fmt::format(message, std::forward<Args>(args)...));
  }

  void parse() {
    if (!text_.starts_with('{')) fail("must start with '{{', got {}", printable(text_));
    json header;
    try {
      header = json::parse(text_, [this, keys = std::vector<std::set<std::string>>()](
                                      int depth, json::parse_event_t event, json& value) mutable {
        // Tensors lie at depth 1, their fields at 2; nothing legal is deeper than a list there.
        if (depth > 3) fail("is nested too deeply");
        if (event == json::parse_event_t::object_start) keys.emplace_back();
        if (event == json::parse_event_t::object_end) keys.pop_back();
        if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
          fail("has the key {} twice", printable(value.get<std::string>()));
        }
        return true;
      });
    } catch (const json::exception& error) {
      fail("is not JSON: {}", error.what());
    }
    for (const auto& [name, value] : header.items()) {
      if (name == kMetadata) {
        read_metadata(value);
      } else {
        entries_.push_back(read_entry(name, value));
      }
    }
  }

  void read_metadata(const json& value) {
    if (!value.is_object()) fail("{} must be an object", kMetadata);
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("{} must hold strings only, but {} is none", kMetadata, printable(key));
      metadata_.emplace(key, text.get<std::string>());
    }
  }

  const json& field(const std::string& name, const json& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end()) fail("tensor {} has no '{}'", printable(name), key);
    return *found;
  }

  Entry read_entry(const std::string& name, const json& value) const {
    if (!value.is_object()) fail("tensor {} must be an object", printable(name));
    Entry entry;
    entry.name = name;
    const json& dtype = field(name, value, "dtype");
    const auto type = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) {
      return dtype.is_string() && dtype.get_ref<const std::string&>() == t.second;
    });
    if (type == kTypes.end()) {
      fail("tensor {} has the element type {}, which no tensor of Pleat holds", printable(name),
           printable(dtype.dump()));
    }
    entry.dtype = type->first;

    const json& shape = field(name, value, "shape");
    if (!shape.is_array()) fail("the shape of tensor {} must be a list", printable(name));
    for (const json& size : shape) {
      constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > largest) {
        fail("the shape of tensor {} must consist of sizes within [0, 2^63), got {}", printable(name),
             printable(size.dump()));
      }
      entry.shape.push_back(size.get<std::int64_t>());
    }

    const json& offsets = field(name, value, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail("the data_offsets of tensor {} must be two numbers", printable(name));
    }
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.begin > entry.end)
      fail("tensor {} ends at byte {}, before its start at {}", printable(name), entry.end, entry.begin);
    check_size(entry);
    return entry;
  }

  void check_size(const Entry& entry) const {
    std::int64_t bytes = 0;
    try {
      // As if nothing were empty, so that no stride of the tensor overflows either.
      Shape filled = entry.shape;
      for (std::int64_t& size : filled) size = std::max<std::int64_t>(size, 1);
      checked_multiply(count(filled), size_of(entry.dtype), "bytes");
      bytes = count(entry.shape) * size_of(entry.dtype);
    } catch (const ShapeError&) {
      fail("tensor {} of shape {} is larger than any memory", printable(entry.name), entry.shape);
    }
    if (static_cast<std::uint64_t>(bytes) != entry.end - entry.begin) {
      fail("tensor {} of shape {} and type {} has {} bytes, but its data_offsets [{}, {}] span {}",
           printable(entry.name), entry.shape, entry.dtype, bytes, entry.begin, entry.end,
           entry.end - entry.begin);
    }
  }

  const File& file_;
  std::string text_;
  std::map<std::string, std::string> metadata_;
  std::vector<Entry> entries_;
};

// The order in which tensors are written: large elements first, so that each starts at a multiple of its
// element size.
std::vector<std::pair<std::string, Tensor>> ordered(const std::map<std::string, Tensor>& tensors) {
  std::vector<std::pair<std::string, Tensor>> list(tensors.begin(), tensors.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  return list;
}

std::size_t byte_count(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel() * size_of(tensor.dtype()));
}

}  // namespace

SafetensorsContent read_safetensors(const std::filesystem::path& path) {
  const File file("read_safetensors", path);
  HeaderReader header(file);
  SafetensorsContent content;
  content.metadata = header.metadata();
  for (const Entry& entry : header.entries()) {
    const Tensor tensor = empty(entry.shape, {.dtype = entry.dtype});
    const std::span<std::byte> bytes(tensor.raw(), byte_count(tensor));
    file.read_at(static_cast<std::int64_t>(header.data_offset() + entry.begin), bytes, "a tensor");
    // Any byte but 0 is true; a C++ bool must not hold another one than 1.
    if (entry.dtype == boolean) {
      for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
    }
    content.tensors.emplace(entry.name, tensor);
  }
  return content;
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  check<ValueError>(!tensors.contains(kMetadata), "write_safetensors: the name '{}' is taken by the format",
                    kMetadata);
  const auto list = ordered(tensors);
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::size_t at = 0;
  for (const auto& [name, tensor] : list) {
    const std::size_t end = at + byte_count(tensor);
    header[name] = {
        {"dtype", type_name(tensor.dtype())}, {"shape", tensor.shape()}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    pleat::fail<ValueError>("write_safetensors: names and metadata must be UTF-8: {}", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  check<ValueError>(text.size() <= kLongestHeader,
                    "write_safetensors: names and metadata need {} bytes, but at most {} are allowed",
                    text.size(), kLongestHeader);

  std::array<std::byte, kLengthBytes> length;
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
