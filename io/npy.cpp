#include "pleat/io/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/io/elements.h"
#include "pleat/io/looks_like.h"
#include "pleat/io/npy_stream.h"

namespace pleat::io {
namespace {

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// The header is the text of a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(const ByteSource& source, int64_t offset, std::string_view text)
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
        if (peek() == '[')
          fail(
              "structured element types have no tensor; save each field by itself: np.save(path, "
              "a['field'])");
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
    source_.fail_at(offset_ + static_cast<int64_t>(at_), cause);
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
    if (value.find('\\') != std::string_view::npos) fail(fmt::format("{} must not hold a backslash", what));
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
    constexpr std::size_t most_dims = 64;  // NumPy's own bound
    Shape sizes;
    expect('(');
    while (!accept(')')) {
      if (sizes.size() == most_dims) fail(fmt::format("'shape' has more than {} dimensions", most_dims));
      sizes.push_back(size());
      const bool comma = accept(',');
      if (!comma && sizes.size() == 1)
        fail("'shape' must be a tuple; one of a single size is written with a comma: (6,)");
      if (!comma) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  int64_t size() {
    skip_space();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    // Python does not accept a number that begins with 0.
    const bool octal = end - begin > 1 && *begin == '0';
    if (error != std::errc{} || value < 0 || octal) fail("'shape' must be a tuple of sizes within [0, 2^63)");
    at_ += static_cast<std::size_t>(end - begin);
    accept('L');  // Python 2 wrote long numbers so
    return value;
  }

  const ByteSource& source_;
  int64_t offset_;
  std::string_view text_;
  std::size_t at_ = 0;
};

Header read_header(ByteSource& source) {
  std::array<std::byte, 8> start;
  source.read_exactly(start, "the start of a .npy file");
  if (std::memcmp(start.data(), npy_magic.data(), npy_magic.size()) != 0) {
    source.fail_at(0, "is not a .npy file, which starts with \\x93NUMPY" + looks_like(source, start));
  }
  const int major = std::to_integer<int>(start[6]), minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    source.fail_at(6, fmt::format("version {}.{} of the .npy format is unknown; 1.0, 2.0 and 3.0 are known",
                                  major, minor));
  }
  std::array<std::byte, 4> length_bytes;
  const auto length_field = std::span(length_bytes).first(major == 1 ? 2 : 4);
  source.read_exactly(length_field, "the header's length");
  const uint64_t length = little_endian(length_field);
  // Headers of plain arrays have about a hundred bytes.
  constexpr uint64_t longest = 1 << 20;
  if (length > longest) {
    source.fail_at(8, fmt::format("a header of {} bytes is too long; at most {} are read", length, longest));
  }
  const int64_t offset = source.position();
  std::string text(length, '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)), "the header");
  return HeaderParser(source, offset, text).parse();
}

// Types by NumPy's names.
struct TypeName {
  std::string_view name;
  std::string_view code;  // kind and bytes
};
constexpr std::array<TypeName, 37> type_names = {
    {{"?", "b1"},      {"bool", "b1"},    {"bool_", "b1"},  {"b", "i1"},       {"int8", "i1"},
     {"byte", "i1"},   {"B", "u1"},       {"uint8", "u1"},  {"ubyte", "u1"},   {"h", "i2"},
     {"int16", "i2"},  {"short", "i2"},   {"H", "u2"},      {"uint16", "u2"},  {"i", "i4"},
     {"int32", "i4"},  {"intc", "i4"},    {"I", "u4"},      {"uint32", "u4"},  {"l", "i8"},
     {"q", "i8"},      {"int64", "i8"},   {"int", "i8"},    {"L", "u8"},       {"Q", "u8"},
     {"uint64", "u8"}, {"uint", "u8"},    {"e", "f2"},      {"float16", "f2"}, {"half", "f2"},
     {"f", "f4"},      {"float32", "f4"}, {"single", "f4"}, {"d", "f8"},       {"float64", "f8"},
     {"double", "f8"}, {"float", "f8"}}};

struct KnownType {
  std::string_view code;
  DType dtype;
};
constexpr std::array<KnownType, 12> known_types = {{{"b1", boolean},
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

// "<f4": byte order (this machine's where it is not there), kind, bytes; or a name.
std::optional<StoredType> parse_descr(std::string_view descr) {
  const bool ordered = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  std::string_view code = descr.substr(ordered ? 1 : 0);
  for (const TypeName& type : type_names) {
    // A byte order is followed by a code, not by a name.
    if (code == type.name && (!ordered || code.size() == 1)) {
      code = type.code;
      break;
    }
  }
  for (const KnownType& type : known_types) {
    if (type.code != code) continue;
    const auto size = static_cast<std::size_t>(code[1] - '0');
    return StoredType{code[0], size, descr[0] == '>' && size > 1, type.dtype};
  }
  return std::nullopt;
}

// The remedy for an array that no tensor can hold.
std::string_view remedy_for(std::string_view descr) {
  const std::size_t kind = descr.find_first_not_of("<>|=");
  switch (kind == std::string_view::npos ? '\0' : descr[kind]) {
    case 'c':
    case 'F':
    case 'D':
    case 'G':
      return "save its real and imaginary parts: np.stack([a.real, a.imag], -1)";
    case 'O':
      return "it is a pickle, which is never run here; save an array of numbers: np.array(a, "
             "dtype=np.float32)";
    case 'U':
    case 'S':
    case 'a':
      return "it holds text; save numbers that stand for it: np.unique(a, return_inverse=True)[1]";
    case 'M':
    case 'm':
      return "it holds times; save them as numbers: a.astype(np.int64)";
    case 'f':
    case 'g':
      return "save it as a.astype(np.float64)";
    case 'V':
      return "it may be bfloat16 or a structure; save it as a.astype(np.float32), or each of its fields";
    default:
      return "save it as one of these, for instance a.astype(np.float32)";
  }
}

// A tensor for the file's elements. In Fortran order the first dimension is the densest, which is
// row-major with the dimensions reversed.
Tensor allocate(const ByteSource& source, const Header& header, const StoredType& format) {
  Shape shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  try {
    // With sizes of 0 counted as 1, so that no stride of the tensor overflows.
    Shape filled = shape;
    for (int64_t& size : filled) size = std::max<int64_t>(size, 1);
    checked_multiply(count(filled), 16, "bytes");
  } catch (const ShapeError&) {
    source.fail(fmt::format("an array of shape {} is larger than any memory", header.shape));
  }
  const int64_t elements = count(shape);
  const int64_t bytes = elements * static_cast<int64_t>(format.size);
  if (bytes > source.remaining_at_most()) {
    source.fail(fmt::format("truncated: an array of shape {} needs {} bytes, but at most {} are left",
                            header.shape, bytes, source.remaining_at_most()));
  }
  // Fortran order is copied into row-major order.
  const int copies = header.fortran_order && header.shape.size() > 1 ? 2 : 1;
  source.check_memory(elements * size_of(format.dtype) * copies,
                      fmt::format("an array of shape {}", header.shape));
  return empty(shape, {.dtype = format.dtype, .device = Device()});
}

std::string descr_of(DType dtype) {
  for (const KnownType& type : known_types)
    if (type.dtype == dtype && type.code[1] - '0' == size_of(dtype))
      return fmt::format("{}{}", size_of(dtype) == 1 ? '|' : '<', type.code);
  pleat::fail<DTypeError>(
      "write_npy: NumPy has no {}; convert to float32, which holds every value: x.to(float32)", dtype);
}

}  // namespace

Tensor read_npy(ByteSource& source) {
  const Header header = read_header(source);
  const std::optional<StoredType> format = parse_descr(header.descr);
  if (!format) {
    source.fail(fmt::format(
        "element type {} has no tensor type; known are b1, u1, u2, u4, u8, i1, i2, i4, i8, f2, f4, f8: {}",
        printable(header.descr), remedy_for(header.descr)));
  }
  const Tensor tensor = allocate(source, header, *format);
  read_elements(source, *format, tensor.raw(), static_cast<std::size_t>(tensor.numel()));
  source.expect_end();
  if (!header.fortran_order || header.shape.size() < 2) return tensor;
  Strides strides = tensor.strides();
  std::reverse(strides.begin(), strides.end());
  return ops::to_format(tensor.as_strided(header.shape, strides, 0), MemoryFormat::contiguous);
}

Tensor read_npy(const std::filesystem::path& path, ReadOptions options) {
  const InputFile file("read_npy", path, options);
  return reading(file.name(), [&] {
    FileSource source(file);
    return read_npy(source);
  });
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string shape;
  for (const int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
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
  file.write(npy_magic);
  file.write(std::string_view(version_and_length.data(), version_and_length.size()));
  file.write(header);
  file.write({dense.raw(), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()))});
  file.commit();
}

}  // namespace pleat::io
