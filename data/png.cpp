#include "pleat/data/png.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <png.h>

#include "pleat/core/create.h"
#include "pleat/core/format.h"

namespace pleat::data {
namespace {

// libpng reports errors by longjmp, which must not pass over anything with a destructor: each function that
// calls setjmp here holds plain values only and returns false instead.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw OutOfMemoryError("read_image: libpng has no memory for a picture");
    }
    png_set_read_fn(png_, this, on_read);
  }
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
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
};

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  constexpr std::size_t signature = 8;
  return bytes.size() >= signature &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, signature) == 0;
}

Tensor decode_png(const io::File& file, std::span<const std::byte> bytes) {
  Decoder decoder(bytes);
  if (!decoder.read_header()) file.fail_at(decoder.position(), fmt::format("PNG: {}", decoder.message()));
  const int64_t width = decoder.width(), height = decoder.height(), channels = decoder.channels();
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  if ((channels != 1 && channels != 3) || decoder.row_bytes() != row_bytes) {
    file.fail_at(decoder.position(), fmt::format("PNG: {} channels in rows of {} bytes cannot be read",
                                                 channels, decoder.row_bytes()));
  }
  // Deflate packs at most 1032 bytes into one, and a byte holds at most 8 pixels of 3 samples: a header that
  // promises more is refused before memory is taken for it.
  constexpr int64_t most_samples_a_byte = 1032 * 8 * 3;
  if (width * channels > file.size() * most_samples_a_byte / height) {
    file.fail_at(decoder.position(), fmt::format("PNG: {} x {} pixels cannot come from a file of {} bytes",
                                                 width, height, file.size()));
  }

  std::vector<png_byte> pixels(row_bytes * static_cast<std::size_t>(height));
  std::vector<png_bytep> rows(static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
  if (!decoder.read_rows(rows.data()))
    file.fail_at(decoder.position(), fmt::format("PNG: {}", decoder.message()));
  if (decoder.position() != file.size())
    file.fail_at(decoder.position(), "the picture ends here, but more bytes follow");

  const Tensor image = empty({channels, height, width}, {.dtype = uint8});
  auto* out = image.data<uint8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = c; i < width * height * channels; i += channels)
      *out++ = pixels[static_cast<std::size_t>(i)];
  }
  return image;
}

}  // namespace pleat::data
