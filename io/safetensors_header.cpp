#include "pleat/io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
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

// Handles the events of nlohmann-json's parser, so that neither the size of the header nor its
// ignored parts take memory.
class HeaderEvents {
 public:
  HeaderEvents(const InputFile& file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool null() { return scalar("null"); }
  bool boolean(bool value) { return scalar(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return scalar(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { return scalar(text); }
  bool binary(json::binary_t&) { return scalar("bytes"); }
  bool number_unsigned(std::uint64_t value) {
    if (ignored_ == 0 && place_ == Place::shape && value <= largest_size) {
      constexpr std::size_t most_dims = 64;  // as NumPy has, and most functions here take
      if (entry().shape.size() == most_dims)
        fail_header(file_, "tensor {} has more than {} dimensions", printable(entry().name), most_dims);
      entry().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (ignored_ == 0 && place_ == Place::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? entry().begin : entry().end) = value;
      return true;
    }
    return scalar(fmt::format("{}", value));
  }
  bool string(std::string& value) {
    if (ignored_ == 0 && place_ == Place::metadata) {
      if (!header_.metadata.emplace(key_, std::move(value)).second) fail_twice(key_);
      return true;
    }
    if (ignored_ == 0 && place_ == Place::entry && key_ == "dtype") {
      set_type(value, printable(value));
      return true;
    }
    return scalar(printable(value));
  }

  bool start_object(std::size_t) {
    enter();
    if (ignored_ > 0) {
      ++ignored_;
    } else if (place_ == Place::outside) {
      place_ = Place::root;
    } else if (place_ == Place::root && key_ == safetensors_metadata) {
      place_ = Place::metadata;
    } else if (place_ == Place::root) {
      place_ = Place::entry;
      header_.entries.emplace_back().name = key_;
      seen_ = 0;
    } else {
      container("an object");
    }
    return true;
  }
  bool end_object() {
    --depth_;
    if (ignored_ > 0) {
      --ignored_;
    } else if (place_ == Place::entry) {
      finish_entry();
      place_ = Place::root;
    } else {
      place_ = place_ == Place::metadata ? Place::root : Place::outside;
    }
    return true;
  }
  bool start_array(std::size_t) {
    enter();
    if (ignored_ > 0) {
      ++ignored_;
    } else if (place_ == Place::entry && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::entry && key_ == "data_offsets") {
      place_ = Place::offsets;
      offsets_ = 0;
    } else {
      container("a list");
    }
    return true;
  }
  bool end_array() {
    --depth_;
    if (ignored_ > 0) {
      --ignored_;
      return true;
    }
    if (place_ == Place::offsets && offsets_ != 2) fail_offsets();
    place_ = Place::entry;
    return true;
  }
  bool key(std::string& key) {
    if (ignored_ > 0) return true;
    key_ = key;
    if (place_ == Place::root && key == safetensors_metadata) {
      if (has_metadata_) fail_twice(key);
      has_metadata_ = true;
    }
    // Fields that the format does not name are ignored.
    constexpr std::array<std::string_view, 3> fields = {"dtype", "shape", "data_offsets"};
    if (place_ == Place::entry) {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (key != fields[i]) continue;
        if ((seen_ >> i & 1) != 0) fail_twice(key);
        seen_ |= 1U << i;
      }
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) {
    fail_header(file_, "is not JSON: {}", json_cause(error));
  }

 private:
  enum class Place { outside, root, metadata, entry, shape, offsets };
  static constexpr auto largest_size = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  SafetensorsEntry& entry() { return header_.entries.back(); }

  void enter() {
    if (++depth_ > most_json_depth) fail_header(file_, "is nested too deeply");
  }

  [[noreturn]] void fail_twice(const std::string& key) {
    fail_header(file_, "has the key {} twice", printable(key));
  }
  [[noreturn]] void fail_offsets() {
    fail_header(file_, "the data_offsets of tensor {} must be two numbers", printable(entry().name));
  }
  [[noreturn]] void fail_size(const std::string& text) {
    fail_header(file_, "the shape of tensor {} must consist of sizes within [0, 2^63), got {}",
                printable(entry().name), text);
  }

  // A value that is not allowed here, or that is ignored.
  bool scalar(const std::string& text) {
    if (ignored_ > 0) return true;
    switch (place_) {
      case Place::outside:
        break;
      case Place::root:
        if (key_ == safetensors_metadata && text == "null") return true;
        if (key_ == safetensors_metadata) fail_header(file_, "{} must be an object", safetensors_metadata);
        fail_header(file_, "tensor {} must be an object", printable(key_));
      case Place::metadata:
        fail_header(file_, "{} must hold strings only, but {} is none", safetensors_metadata,
                    printable(key_));
      case Place::entry:
        if (key_ == "dtype") set_type("", text);
        if (key_ == "shape")
          fail_header(file_, "the shape of tensor {} must be a list", printable(entry().name));
        if (key_ == "data_offsets") fail_offsets();
        break;
      case Place::shape:
        fail_size(text);
      case Place::offsets:
        fail_offsets();
    }
    return true;
  }

  // A list or an object that is not allowed here, or that is ignored.
  void container(const std::string& what) {
    const bool unknown =
        place_ == Place::entry && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets";
    if (!unknown) scalar(what);
    ignored_ = 1;
  }

  void set_type(const std::string& name, const std::string& text) {
    entry().type = find_safetensors_type(name);
    if (entry().type == nullptr) {
      fail_header(file_,
                  "tensor {} has the element type {}, which the safetensors format does not have as far as "
                  "this version of Pleat knows it",
                  printable(entry().name), text);
    }
  }

  void finish_entry() {
    constexpr std::array<const char*, 3> fields = {"dtype", "shape", "data_offsets"};
    for (std::size_t i = 0; i < fields.size(); ++i)
      if ((seen_ >> i & 1) == 0)
        fail_header(file_, "tensor {} has no '{}'", printable(entry().name), fields[i]);
    if (entry().begin > entry().end)
      fail_header(file_, "tensor {} ends at byte {}, before its start at {}", printable(entry().name),
                  entry().end, entry().begin);
    check_size();
  }

  void check_size() {
    const SafetensorsEntry& e = entry();
    try {
      // With sizes of 0 counted as 1, so that no stride of the tensor overflows. No element takes
      // more than 64 bits, in the file or in memory.
      Shape filled = e.shape;
      for (std::int64_t& size : filled) size = std::max<std::int64_t>(size, 1);
      checked_multiply(count(filled), 64, "bits");
    } catch (const ShapeError&) {
      fail_header(file_, "tensor {} of shape {} is larger than any memory", printable(e.name), e.shape);
    }
    const std::int64_t bits = e.elements() * e.type->bits;
    if (bits % 8 != 0)
      fail_header(file_, "tensor {} of shape {} and type {} does not end with a whole byte",
                  printable(e.name), e.shape, e.type->name);
    if (static_cast<std::uint64_t>(bits / 8) != e.end - e.begin) {
      fail_header(file_,
                  "tensor {} of shape {} and type {} has {} bytes, but its data_offsets [{}, {}] span {}",
                  printable(e.name), e.shape, e.type->name, bits / 8, e.begin, e.end, e.end - e.begin);
    }
  }

  const InputFile& file_;
  SafetensorsHeader& header_;
  Place place_ = Place::outside;
  int depth_ = 0;
  int ignored_ = 0;  // depth inside an ignored value
  std::string key_;
  unsigned seen_ = 0;  // bits of the fields that the entry has
  int offsets_ = 0;
  bool has_metadata_ = false;
};

std::string read_text(const InputFile& file, FileSource& source) {
  std::array<std::byte, length_bytes + 1> start{};
  const auto known = std::min<std::int64_t>(file.size(), start.size());
  file.read_at(0, std::span(start).first(static_cast<std::size_t>(known)), "the header's length");
  const bool begins = start[length_bytes] == std::byte{'{'};
  const std::string hint = begins ? "" : looks_like(file);
  if (known < static_cast<std::int64_t>(length_bytes))
    file.fail_at(0, fmt::format("truncated: the header's length needs 8 bytes, but the file has {}{}",
                                file.size(), hint));
  std::array<std::byte, length_bytes> field;
  source.read_exactly(field, "the header's length");
  const std::uint64_t length = little_endian(field);
  if (length > most_safetensors_header) {
    file.fail_at(0, fmt::format("a header of {} bytes is too long; at most {} are allowed{}", length,
                                most_safetensors_header, begins ? looks_like(file) : hint));
  }
  if (length > static_cast<std::uint64_t>(source.remaining_at_most()))
    fail_header(file, "truncated: the header needs {} bytes, but the file has {}{}", length, file.size(),
                hint);
  // The header is larger in memory than as text: an entry of the metadata twelve times.
  constexpr std::int64_t expansion = 16;
  source.check_memory(static_cast<std::int64_t>(length) * expansion, "what the header says");
  std::string text(length, '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)), "the header");
  if (!text.starts_with('{')) fail_header(file, "must start with '{{', got {}{}", printable(text), hint);
  // The parser takes a zero byte as the end of the text.
  const std::size_t zero = text.find('\0');
  if (zero != std::string::npos)
    file.fail_at(static_cast<std::int64_t>(length_bytes + zero),
                 "header: holds a zero byte; a header is padded with spaces");
  return text;
}

void check_names(const InputFile& file, const std::vector<SafetensorsEntry>& entries) {
  std::vector<const std::string*> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(&entry.name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto twice =
      std::adjacent_find(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a == *b; });
  if (twice != names.end()) fail_header(file, "has the key {} twice", printable(**twice));
}

// Checks that tensors fill the data without overlap or hole.
void check_places(const InputFile& file, const FileSource& source, std::vector<SafetensorsEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at) {
      fail_header(file,
                  "tensor {} starts at byte {} of the data, but the one before ends at {}: they must follow "
                  "each other without overlap or hole",
                  printable(entry.name), entry.begin, at);
    }
    at = entry.end;
  }
  const auto size = static_cast<std::uint64_t>(source.remaining_at_most());
  if (at > size)
    file.fail_at(
        file.size(),
        fmt::format("truncated: the tensors need {} bytes, but only {} follow the header", at, size));
  if (at < size) {
    file.fail_at(source.position() + static_cast<std::int64_t>(at),
                 fmt::format("the tensors end here, but {} more bytes follow", size - at));
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(const InputFile& file, FileSource& source) {
  const std::string text = read_text(file, source);
  SafetensorsHeader header;
  HeaderEvents events(file, header);
  json::sax_parse(text, &events);
  check_names(file, header.entries);
  check_places(file, source, header.entries);
  return header;
}

}  // namespace pleat::io
