#include "pleat/data/image.h"

#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/picture_formats.h"
#include "pleat/io/byte_source.h"
#include "pleat/io/looks_like.h"

namespace pleat::data {
namespace {

// PGM and PPM: https://netpbm.sourceforge.net/doc/pgm.html, https://netpbm.sourceforge.net/doc/ppm.html
class PnmReader {
 public:
  PnmReader(const InputFile& file, std::span<const std::byte> bytes) : file_(file), bytes_(bytes) {}

  Tensor read() {
    const char kind = static_cast<char>(bytes_[1]);
    const bool text = kind == '2' || kind == '3';
    const int64_t channels = kind == '3' || kind == '6' ? 3 : 1;
    at_ = 2;
    const int64_t width = number("the width", 1, 1 << 30);
    const int64_t height = number("the height", 1, 1 << 30);
    const int64_t largest = number("the largest value", 1, 65535);
    const int64_t sample_bytes = !text && largest > 255 ? 2 : 1;
    if (!text) single_space(width * height * channels * sample_bytes);
    // In text a sample takes a digit and a space, but for the last one.
    const int64_t left = static_cast<int64_t>(bytes_.size() - at_);
    const int64_t samples_left = text ? (left + 1) / 2 : left / sample_bytes;
    if (width * height > samples_left / channels) {
      fail(fmt::format(
          "truncated: {} x {} pixels of {} samples are said to follow, but only {} bytes are left", width,
          height, channels, left));
    }
    check_picture_memory(file_, width, height, channels);
    const Tensor image = empty({channels, height, width}, {.dtype = uint8, .device = Device()});
    auto* out = image.data<uint8_t>();
    const int64_t plane = width * height;
    for (int64_t pixel = 0; pixel < plane; ++pixel) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t value = text ? number("a sample", 0, largest) : binary_sample(sample_bytes, largest);
        out[c * plane + pixel] = static_cast<uint8_t>((value * 255 + largest / 2) / largest);
      }
    }
    return image;
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const { file_.fail_at(static_cast<int64_t>(at_), cause); }

  int peek() const { return at_ < bytes_.size() ? std::to_integer<int>(bytes_[at_]) : -1; }

  // Space, and comments from # to the end of the line.
  void skip_space() {
    while (std::isspace(peek()) != 0 || peek() == '#') {
      if (peek() == '#') {
        while (peek() != '\n' && peek() != -1) ++at_;
      } else {
        ++at_;
      }
    }
  }

  // Of two characters where a line ends as Windows ends it, unless the samples begin with the second.
  void single_space(int64_t sample_bytes) {
    if (std::isspace(peek()) == 0) fail("a single space must stand before the samples");
    const bool is_return = peek() == '\r';
    ++at_;
    if (is_return && peek() == '\n' && sample_bytes < static_cast<int64_t>(bytes_.size() - at_)) ++at_;
  }

  int64_t number(const char* what, int64_t least, int64_t most) {
    skip_space();
    const std::size_t start = at_;
    int64_t value = 0;
    while (std::isdigit(peek()) != 0 && value <= most)
      value = 10 * value + (std::to_integer<int>(bytes_[at_++]) - '0');
    if (at_ == start || value < least || value > most) {
      at_ = start;
      fail(fmt::format("{} must be a number within [{}, {}]", what, least, most));
    }
    return value;
  }

  int64_t binary_sample(int64_t size, int64_t largest) {
    const auto value =
        static_cast<int64_t>(io::big_endian(bytes_.subspan(at_, static_cast<std::size_t>(size))));
    if (value > largest) fail(fmt::format("a sample is {}, above the largest value of {}", value, largest));
    at_ += static_cast<std::size_t>(size);
    return value;
  }

  const InputFile& file_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

bool is_pnm(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{'P'} &&
         std::string("2356").find(static_cast<char>(bytes[1])) != std::string::npos;
}

}  // namespace

void check_picture_memory(const InputFile& file, int64_t width, int64_t height, int64_t bytes_a_pixel,
                          int64_t row_bytes_a_pixel) {
  // Neither format has sides of more than 2^31.
  int64_t bytes = 0;
  if (__builtin_mul_overflow(width, height, &bytes) || __builtin_mul_overflow(bytes, bytes_a_pixel, &bytes) ||
      __builtin_add_overflow(bytes, file.size() + width * row_bytes_a_pixel, &bytes))
    file.fail_at(0, fmt::format("a picture of {} x {} pixels is larger than any memory", width, height));
  if (bytes > file.memory().left())
    file.fail_at(0, above_memory_limit(fmt::format("a picture of {} x {} pixels", width, height), bytes,
                                       file.memory()));
}

namespace {

std::vector<std::byte> bytes_of(const InputFile& file) {
  if (file.size() > file.memory().left())
    file.fail_at(0, above_memory_limit("the file itself", file.size(), file.memory()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes, "a picture");
  return bytes;
}

}  // namespace

Tensor read_mask(const std::filesystem::path& path, ReadOptions options) {
  const InputFile file("read_mask", path, options);
  return reading(file.name(), [&] {
    const std::vector<std::byte> bytes = bytes_of(file);
    if (!is_png(bytes))
      file.fail_at(0, "is no PNG file, in which a pixel can be a class" + io::looks_like(file));
    const Tensor mask = decode_png(file, bytes, true);
    check<FileError>(mask.size(0) == 1,
                     "{}: has colours, and a pixel must be a class; save it grey or with a palette",
                     file.name());
    return mask.as_strided({mask.size(1), mask.size(2)}, {mask.size(2), 1}, 0);
  });
}

Tensor read_image(const std::filesystem::path& path, ReadOptions options) {
  const InputFile file("read_image", path, options);
  return reading(file.name(), [&] {
    const std::vector<std::byte> bytes = bytes_of(file);
    if (is_png(bytes)) return decode_png(file, bytes);
    if (is_jpeg(bytes)) return decode_jpeg(file, bytes);
    if (is_pnm(bytes)) return PnmReader(file, bytes).read();
    file.fail_at(
        0, "is neither a PNG, nor a JPEG, nor a PGM or PPM file (P2, P3, P5, P6)" + io::looks_like(file));
  });
}

}  // namespace pleat::data
