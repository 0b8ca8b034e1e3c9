#include "pleat/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/json_input.h"
#include "pleat/io/looks_like.h"

namespace pleat::io {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;

template <class... Args>
[[noreturn]] void fail_header(const InputFile& file, fmt::format_string<Args...> message, Args&&... args) {
  file.fail_at(length_bytes, "header: " + fmt::format(message, std::forward<Args>(args)...));
}

constexpr std::array<std::string_view, 3> fields = {"dtype", "shape", "data_offsets"};

// Refuses what the DOM would not show (keys that come twice) or should not hold (deep nesting). A pass of its
// own: the parser's callback goes through all entries at the end of each.
class HeaderCheck : public nlohmann::json_sax<json> {
 public:
  explicit HeaderCheck(const InputFile& file) : file_(file) {}

  bool null() override { return depth_ == 1 && is_metadata() ? true : value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(json::number_integer_t) override { return value(); }
  bool number_unsigned(json::number_unsigned_t) override { return value(); }
  bool number_float(json::number_float_t, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return start(); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return value() && start(); }
  bool end_array() override { return end(); }
  // The parser says it.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  bool key(std::string& key) override {
    if (depth_ == 1) {
      name_ = key;
      fields_.clear();
    } else if (depth_ > 2 ||
               (!is_metadata() && std::ranges::find(fields, std::string_view(key)) == fields.end())) {
      return true;
    }
    if (!(depth_ == 1 ? names_ : fields_).insert(key).second)
      fail_header(file_, "has the key {} twice", printable(key));
    return true;
  }

 private:
  bool is_metadata() const { return name_ == safetensors_metadata; }
  bool value() const {
    if (depth_ == 1)
      fail_header(file_, "{} must be an object", is_metadata() ? name_ : "tensor " + printable(name_));
    return true;
  }
  bool start() {
    if (depth_ >= most_json_depth) fail_header(file_, "is nested too deeply");
    ++depth_;
    return true;
  }
  bool end() {
    --depth_;
    return true;
  }

  const InputFile& file_;
  int depth_ = 0;
  std::string name_;
  std::set<std::string> names_, fields_;  // of the header, and of its entry `name_`
};

// A value as messages quote it.
std::string text_of(const json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  return value.is_array() ? "a list" : value.is_object() ? "an object" : value.dump();
}

Shape shape_of(const InputFile& file, const std::string& name, const json& list) {
  constexpr std::size_t most_dims = 64;  // as NumPy has, and most functions here take
  if (!list.is_array()) fail_header(file, "the shape of tensor {} must be a list", name);
  if (list.size() > most_dims) fail_header(file, "tensor {} has more than {} dimensions", name, most_dims);
  Shape shape;
  for (const json& size : list) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > std::numeric_limits<int64_t>::max())
      fail_header(file, "the shape of tensor {} must consist of sizes within [0, 2^63), got {}", name,
                  text_of(size));
    shape.push_back(size.get<int64_t>());
  }
  return shape;
}

void check_size(const InputFile& file, const std::string& name, const SafetensorsEntry& e) {
  try {
    // With sizes of 0 counted as 1, so that no stride of the tensor overflows. No element takes
    // more than 64 bits, in the file or in memory.
    Shape filled = e.shape;
    for (int64_t& size : filled) size = std::max<int64_t>(size, 1);
    checked_multiply(count(filled), 64, "bits");
  } catch (const ShapeError&) {
    fail_header(file, "tensor {} of shape {} is larger than any memory", name, e.shape);
  }
  const int64_t bits = e.elements() * e.type->bits;
  if (bits % 8 != 0)
    fail_header(file, "tensor {} of shape {} and type {} does not end with a whole byte", name, e.shape,
                e.type->name);
  if (static_cast<uint64_t>(bits / 8) != e.end - e.begin)
    fail_header(file, "tensor {} of shape {} and type {} has {} bytes, but its data_offsets [{}, {}] span {}",
                name, e.shape, e.type->name, bits / 8, e.begin, e.end, e.end - e.begin);
}

SafetensorsEntry entry_of(const InputFile& file, const std::string& key, const json& object) {
  const std::string name = printable(key);
  for (const std::string_view field : fields)
    if (!object.contains(field)) fail_header(file, "tensor {} has no '{}'", name, field);
  const json &dtype = object["dtype"], &offsets = object["data_offsets"];
  SafetensorsEntry entry;
  entry.name = key;
  if (dtype.is_string()) entry.type = find_safetensors_type(dtype.get_ref<const std::string&>());
  if (entry.type == nullptr)
    fail_header(file,
                "tensor {} has the element type {}, which the safetensors format does not have as far as "
                "this version of Pleat knows it",
                name, text_of(dtype));
  entry.shape = shape_of(file, name, object["shape"]);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    fail_header(file, "the data_offsets of tensor {} must be two numbers", name);
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end)
    fail_header(file, "tensor {} ends at byte {}, before its start at {}", name, entry.end, entry.begin);
  check_size(file, name, entry);
  return entry;
}

std::string read_text(const InputFile& file, FileSource& source) {
  std::array<std::byte, length_bytes + 1> start{};
  const auto known = std::min<int64_t>(file.size(), start.size());
  file.read_at(0, std::span(start).first(static_cast<std::size_t>(known)), "the header's length");
  const bool begins = start[length_bytes] == std::byte{'{'};
  const std::string hint = begins ? "" : looks_like(file);
  if (known < static_cast<int64_t>(length_bytes))
    file.fail_at(0, fmt::format("truncated: the header's length needs 8 bytes, but the file has {}{}",
                                file.size(), hint));
  std::array<std::byte, length_bytes> field;
  source.read_exactly(field, "the header's length");
  const uint64_t length = little_endian(field);
  if (length > most_safetensors_header) {
    file.fail_at(0, fmt::format("a header of {} bytes is too long; at most {} are allowed{}", length,
                                most_safetensors_header, begins ? looks_like(file) : hint));
  }
  if (length > static_cast<uint64_t>(source.remaining_at_most()))
    fail_header(file, "truncated: the header needs {} bytes, but the file has {}{}", length, file.size(),
                hint);
  // The header is larger in memory than as text: a short entry of the metadata more than forty times.
  constexpr int64_t expansion = 48;
  source.check_memory(static_cast<int64_t>(length) * expansion, "what the header says");
  std::string text(length, '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)), "the header");
  if (!text.starts_with('{')) fail_header(file, "must start with '{{', got {}{}", printable(text), hint);
  // The parser takes a zero byte as the end of the text.
  const std::size_t zero = text.find('\0');
  if (zero != std::string::npos)
    file.fail_at(static_cast<int64_t>(length_bytes + zero),
                 "header: holds a zero byte; a header is padded with spaces");
  return text;
}

// Checks that tensors fill the data without overlap or hole.
void check_places(const InputFile& file, const FileSource& source, std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at) {
      fail_header(file,
                  "tensor {} starts at byte {} of the data, but the one before ends at {}: they must follow "
                  "each other without overlap or hole",
                  printable(entry.name), entry.begin, at);
    }
    at = entry.end;
  }
  const auto size = static_cast<uint64_t>(source.remaining_at_most());
  if (at > size)
    file.fail_at(
        file.size(),
        fmt::format("truncated: the tensors need {} bytes, but only {} follow the header", at, size));
  if (at < size) {
    file.fail_at(source.position() + static_cast<int64_t>(at),
                 fmt::format("the tensors end here, but {} more bytes follow", size - at));
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file, FileSource& source) {
  const std::string text = read_text(file, source);
  json root;
  try {
    HeaderCheck check(file);
    json::sax_parse(text, &check);
    root = json::parse(text);
  } catch (const json::exception& error) {
    fail_header(file, "is not JSON: {}", json_cause(error));
  }
  SafetensorsHeader header;
  for (const auto& [name, value] : root.items()) {
    if (name != safetensors_metadata) {
      header.entries.push_back(entry_of(file, name, value));
      continue;
    }
    for (const auto& [key, content] : value.items()) {
      if (!content.is_string())
        fail_header(file, "{} must hold strings only, but {} is none", name, printable(key));
      header.metadata.emplace(key, content.get<std::string>());
    }
  }
  check_places(file, source, header.entries);
  return header;
}

}  // namespace pleat::io
