#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>

#include <png.h>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/picture_formats.h"

namespace pleat::data {
namespace {

// Bytes of row buffers for each pixel of a row: three rows of up to 8 bytes in libpng, and one
// here.
constexpr int64_t row_buffers = 32;

// libpng reports errors by longjmp, which must not pass over anything with a destructor: each function that
// calls setjmp here holds plain values only and returns false instead.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    // Chunks beside the pixels (texts, profiles, times) are skipped, and no chunk can be longer
    // than the file, since libpng would allocate the length that a chunk promises.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, std::max<png_alloc_size_t>(bytes.size(), 1));
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    bits_ = static_cast<int64_t>(png_get_bit_depth(png_, info_)) * png_get_channels(png_, info_);
    interlaced_ = png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE;
    return true;
  }
  // Asks for bytes without transparency, which takes memory for rows.
  bool prepare(bool indices) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    if (indices) {
      png_set_packing(png_);
    } else {
      png_set_expand(png_);
      png_set_scale_16(png_);
    }
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  // All rows of an interlaced picture, which come in several passes.
  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    return true;
  }
  bool read_row(png_bytep row) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_row(png_, row, nullptr);
    return true;
  }
  bool read_end() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_end(png_, nullptr);
    return true;
  }

  int64_t bits_a_pixel() const { return bits_; }
  bool interlaced() const { return interlaced_; }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  // Of the picture that the header promises.
  int64_t most_channels() const {
    return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  }
  int64_t channels() const { return png_get_channels(png_, info_); }
  std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  int64_t position() const { return static_cast<int64_t>(at_); }
  const char* message() const { return message_.data(); }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<Decoder*>(png_get_error_ptr(png));
    std::snprintf(self->message_.data(), self->message_.size(), "%s", message);
    png_longjmp(png, 1);
  }

  // A warning concerns side information, such as colour profiles, that is not used.
  static void on_warning(png_structp, png_const_charp) {}

  static void on_read(png_structp png, png_bytep to, std::size_t count) {
    auto* self = static_cast<Decoder*>(png_get_io_ptr(png));
    if (count > self->bytes_.size() - self->at_)
      png_error(png, "truncated: the file ends within the picture");
    std::copy_n(reinterpret_cast<const png_byte*>(self->bytes_.data()) + self->at_, count, to);
    self->at_ += count;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 160> message_{};
  int64_t bits_ = 0;  // of a pixel in the file
  bool interlaced_ = false;
};

// Samples that alternate as planes: `pixels` of `channels` each, to `out` with planes `plane` long.
void split_channels(const png_byte* samples, int64_t pixels, int64_t channels, uint8_t* out, int64_t plane) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) out[c * plane + i] = samples[i * channels + c];
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  constexpr std::size_t signature = 8;
  return bytes.size() >= signature &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, signature) == 0;
}

Tensor decode_png(const InputFile& file, std::span<const std::byte> bytes, bool indices) {
  Decoder decoder(bytes);
  const auto demand = [&](bool done) {
    if (!done) file.fail_at(decoder.position(), fmt::format("PNG: {}", decoder.message()));
  };
  demand(decoder.read_header());
  const int64_t width = decoder.width(), height = decoder.height();
  // Deflate packs at most 1032 bytes into one: a header that promises more is refused before memory
  // is allocated for it. In a double no product overflows.
  if (static_cast<double>(width) * static_cast<double>(height) * static_cast<double>(decoder.bits_a_pixel()) >
      8.0 * 1032 * static_cast<double>(file.size())) {
    file.fail_at(decoder.position(), fmt::format("PNG: {} x {} pixels cannot come from a file of {} bytes",
                                                 width, height, file.size()));
  }
  check_picture_memory(file, width, height, decoder.most_channels() * (decoder.interlaced() ? 2 : 1),
                       row_buffers);
  demand(decoder.prepare(indices));
  const int64_t channels = decoder.channels(), plane = width * height;
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  if ((channels != 1 && channels != 3) || decoder.row_bytes() != row_bytes) {
    file.fail_at(decoder.position(), fmt::format("PNG: {} channels in rows of {} bytes cannot be read",
                                                 channels, decoder.row_bytes()));
  }

  const Tensor image = empty({channels, height, width}, {.dtype = uint8, .device = Device()});
  auto* out = image.data<uint8_t>();
  const std::size_t rows_at_once = decoder.interlaced() ? static_cast<std::size_t>(height) : 1;
  std::vector<png_byte> samples(row_bytes * rows_at_once);
  if (decoder.interlaced()) {
    std::vector<png_bytep> rows(rows_at_once);
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = samples.data() + y * row_bytes;
    demand(decoder.read_rows(rows.data()));
    split_channels(samples.data(), plane, channels, out, plane);
  } else {
    for (int64_t y = 0; y < height; ++y) {
      demand(decoder.read_row(samples.data()));
      split_channels(samples.data(), width, channels, out + y * width, plane);
    }
  }
  demand(decoder.read_end());
  return image;
}

}  // namespace pleat::data
