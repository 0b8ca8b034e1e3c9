#include "pleat/io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "pleat/core/atomic_file.h"
#include "pleat/core/checked_math.h"
#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/io/npy_stream.h"

static_assert(std::endian::native == std::endian::little,
              "the readers and writers of io/ copy elements as they lie");

namespace pleat::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, std::int64_t offset, std::string_view text)
      : source_(source), offset_(offset), text_(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string("a key");
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        if (peek() == '[') fail("structured element types have no tensor");
        header.descr = string("the element type");
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape();
      } else {
        fail(fmt::format("key {} is unknown or given twice", printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text follows the header's dictionary");
    if (!has_descr || !has_order || !has_shape) {
      fail("the header must have the keys 'descr', 'fortran_order' and 'shape'");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const {
    source_.fail_at(offset_ + static_cast<std::int64_t>(at_), cause);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c))
      fail(fmt::format("the header must have '{}' here, got {}", c, printable(text_.substr(at_))));
  }

  std::string string(const char* what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(fmt::format("{} must be a string in quotes", what));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(fmt::format("{} has no closing quote", what));
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(value);
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] :
         {std::pair{std::string_view("False"), false}, {std::string_view("True"), true}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("'fortran_order' must be True or False");
  }

  Shape shape() {
    Shape sizes;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0) fail("'shape' must be a tuple of sizes within [0, 2^63)");
      at_ += static_cast<std::size_t>(end - begin);
      accept('L');  // Python 2 wrote long numbers so
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  const ByteSource& source_;
  std::int64_t offset_;
  std::string_view text_;
  std::size_t at_ = 0;
};

Header read_header(ByteSource& source) {
  std::array<std::byte, 8> start;
  source.read_exactly(start, "the start of a .npy file");
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    source.fail_at(0, "is not a .npy file: it must start with \\x93NUMPY");
  }
  const int major = std::to_integer<int>(start[6]);
  if (major < 1 || major > 3) {
    source.fail_at(6, fmt::format("version {} of the .npy format is unknown; 1 to 3 are known", major));
  }
  std::array<std::byte, 4> length_bytes;
  const auto length_field = std::span(length_bytes).first(major == 1 ? 2 : 4);
  source.read_exactly(length_field, "the header's length");
  const std::uint64_t length = little_endian(length_field);
  // Headers of plain arrays have about a hundred bytes.
  constexpr std::uint64_t longest = 1 << 20;
  if (length > longest) {
    source.fail_at(8, fmt::format("a header of {} bytes is too long; at most {} are read", length, longest));
  }
  const std::int64_t offset = source.position();
  std::string text(length, '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)), "the header");
  return HeaderParser(source, offset, text).parse();
}

// How elements lie in the file, and what they become.
struct Format {
  char kind;             // b, u, i or f as in NumPy's type strings
  std::size_t size = 0;  // bytes of an element in the file
  bool swap = false;     // most significant byte first
  DType dtype = float32;
};

// "<f4": byte order, kind, bytes.
std::optional<Format> parse_descr(std::string_view descr) {
  if (descr.size() != 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    return std::nullopt;
  struct Known {
    std::string_view name;
    DType dtype;
  };
  constexpr std::array<Known, 12> known = {{{"b1", boolean},
                                            {"u1", uint8},
                                            {"i1", int32},
                                            {"u2", int32},
                                            {"i2", int32},
                                            {"i4", int32},
                                            {"u4", int64},
                                            {"i8", int64},
                                            {"u8", int64},
                                            {"f2", float16},
                                            {"f4", float32},
                                            {"f8", float64}}};
  for (const Known& type : known) {
    if (type.name != descr.substr(1)) continue;
    const auto size = static_cast<std::size_t>(descr[2] - '0');
    if (descr[0] == '|' && size > 1) return std::nullopt;
    return Format{descr[1], size, descr[0] == '>' && size > 1, type.dtype};
  }
  return std::nullopt;
}

template <class T>
void swap_bytes(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + sizeof(T)));
  }
}

void swap_bytes(std::span<std::byte> bytes, std::size_t size) {
  if (size == 2) swap_bytes<std::uint16_t>(bytes);
  if (size == 4) swap_bytes<std::uint32_t>(bytes);
  if (size == 8) swap_bytes<std::uint64_t>(bytes);
}

// Elements of type From in the file, widened to To.
template <class From, class To>
void read_widened(ByteSource& source, const Format& format, std::span<To> out) {
  constexpr std::size_t piece = 1 << 14;
  std::vector<From> buffer(std::min(piece, out.size()));
  for (std::size_t done = 0; done < out.size();) {
    const auto part = std::span(buffer).first(std::min(piece, out.size() - done));
    const std::int64_t start = source.position();
    source.read_exactly(std::as_writable_bytes(part), "the array");
    if (format.swap) swap_bytes(std::as_writable_bytes(part), sizeof(From));
    for (std::size_t i = 0; i < part.size(); ++i, ++done) {
      if constexpr (sizeof(From) == sizeof(To) && !std::is_same_v<From, To>) {
        if (part[i] > static_cast<From>(std::numeric_limits<To>::max())) {
          source.fail_at(start + static_cast<std::int64_t>(i * sizeof(From)),
                         fmt::format("{} is too large for int64, the type that uint64 is read as", part[i]));
        }
      }
      out[done] = static_cast<To>(part[i]);
    }
  }
}

void read_elements(ByteSource& source, const Format& format, std::byte* to, std::size_t count) {
  if (format.size == static_cast<std::size_t>(size_of(format.dtype)) && format.kind != 'u') {
    const std::span<std::byte> bytes(to, count * format.size);
    source.read_exactly(bytes, "the array");
    if (format.swap) swap_bytes(bytes, format.size);
    // Any byte but 0 is true; a C++ bool must not hold another one than 1.
    if (format.dtype == boolean) {
      for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
    }
    return;
  }
  const std::span<std::int32_t> int32s(reinterpret_cast<std::int32_t*>(to), count);
  const std::span<std::int64_t> int64s(reinterpret_cast<std::int64_t*>(to), count);
  switch (format.size) {
    case 1:
      if (format.kind == 'u') return source.read_exactly({to, count}, "the array");
      return read_widened<std::int8_t>(source, format, int32s);
    case 2:
      if (format.kind == 'u') return read_widened<std::uint16_t>(source, format, int32s);
      return read_widened<std::int16_t>(source, format, int32s);
    case 4:
      return read_widened<std::uint32_t>(source, format, int64s);
    default:
      return read_widened<std::uint64_t>(source, format, int64s);
  }
}

// Of the file: `Fortran` order means that the first dimension is the densest, which is row-major with the
// dimensions reversed.
Tensor allocate(const ByteSource& source, const Header& header, const Format& format) {
  Shape shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  try {
    // As if nothing were empty, so that no stride of the tensor overflows either.
    Shape filled = shape;
    for (std::int64_t& size : filled) size = std::max<std::int64_t>(size, 1);
    checked_multiply(count(filled), 8, "bytes");
    const std::int64_t bytes =
        checked_multiply(count(shape), static_cast<std::int64_t>(format.size), "bytes");
    if (bytes > source.remaining_at_most()) {
      source.fail(fmt::format("truncated: an array of shape {} needs {} bytes, but at most {} are left",
                              header.shape, bytes, source.remaining_at_most()));
    }
  } catch (const ShapeError&) {
    source.fail(fmt::format("an array of shape {} is larger than any memory", header.shape));
  }
  return empty(shape, {.dtype = format.dtype});
}

std::string descr_of(DType dtype) {
  switch (dtype) {
    case boolean:
      return "|b1";
    case uint8:
      return "|u1";
    case int32:
      return "<i4";
    case int64:
      return "<i8";
    case float16:
      return "<f2";
    case float32:
      return "<f4";
    case float64:
      return "<f8";
    case bfloat16:
      break;
  }
  pleat::fail<DTypeError>(
      "write_npy: NumPy has no {}; convert to float32, which holds every value: x.to(float32)", dtype);
}

}  // namespace

Tensor read_npy(ByteSource& source) {
  const Header header = read_header(source);
  const std::optional<Format> format = parse_descr(header.descr);
  if (!format) {
    source.fail(fmt::format(
        "element type {} has no tensor type; known are b1, u1, u2, u4, u8, i1, i2, i4, i8, f2, f4, f8",
        printable(header.descr)));
  }
  const Tensor tensor = allocate(source, header, *format);
  read_elements(source, *format, tensor.raw(), static_cast<std::size_t>(tensor.numel()));
  source.expect_end();
  if (!header.fortran_order || header.shape.size() < 2) return tensor;
  Strides strides = tensor.strides();
  std::reverse(strides.begin(), strides.end());
  return ops::to_format(tensor.as_strided(header.shape, strides, 0), MemoryFormat::contiguous);
}

Tensor read_npy(const std::filesystem::path& path) {
  const File file("read_npy", path);
  FileSource source(file);
  return read_npy(source);
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   descr_of(tensor.dtype()), shape);
  // The array starts at a multiple of 64 bytes, and the header ends with a line break.
  constexpr std::size_t before = 10;
  header.append((64 - (before + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  check<ShapeError>(header.size() <= 0xffff,
                    "write_npy: {} dimensions are too many for a .npy file of version 1.0", tensor.rank());
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(header.size() & 0xff),
                                                  static_cast<char>(header.size() >> 8)};
  const Tensor dense = ops::to_format(ops::to_device(tensor, Device{}), MemoryFormat::contiguous);

  AtomicFile file("write_npy", path);
  file.write(kMagic);
  file.write(std::string_view(version_and_length.data(), version_and_length.size()));
  file.write(header);
  file.write({dense.raw(), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()))});
  file.commit();
}

}  // namespace pleat::io
