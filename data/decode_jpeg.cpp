#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

// The C headers need FILE and size_t before them, and the second needs the first.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/picture_formats.h"

namespace pleat::data {
namespace {

// As for PNG: libjpeg's errors leave by longjmp, so each function that calls setjmp here holds plain values
// only and returns false instead.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = on_error;
    errors_.manager.emit_message = on_message;
    errors_.manager.output_message = on_output;
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool read_header(int64_t memory) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.mem->max_memory_to_use =
        static_cast<long>(std::min<int64_t>(memory, std::numeric_limits<long>::max()));
    info_.progress = &progress_.manager;
    progress_.manager.progress_monitor = on_progress;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()),
                 static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&info_, TRUE);
    // libjpeg makes colours of YCbCr, not of CMYK.
    const bool four = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    if (info_.jpeg_color_space != JCS_GRAYSCALE) info_.out_color_space = four ? JCS_CMYK : JCS_RGB;
    return true;
  }
  bool start() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    return true;
  }
  bool read_row(JSAMPROW row) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_read_scanlines(&info_, &row, 1);
    return true;
  }
  bool finish() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_finish_decompress(&info_);
    return true;
  }

  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }
  // Samples of a row as libjpeg gives it.
  int64_t samples() const { return info_.out_color_space == JCS_GRAYSCALE ? 1 : four() ? 4 : 3; }
  bool four() const { return info_.out_color_space == JCS_CMYK; }
  bool huffman() const { return info_.arith_code == 0; }
  int64_t position() const {
    const auto left = info_.src == nullptr ? bytes_.size() : info_.src->bytes_in_buffer;
    return static_cast<int64_t>(bytes_.size() - std::min(left, bytes_.size()));
  }
  const char* message() const { return errors_.message.data(); }

  // Blocks of 8 x 8 samples, and bytes that libjpeg holds of them while several scans are put together.
  double blocks() const {
    double blocks = 0;
    for (int c = 0; c < info_.num_components; ++c) {
      const jpeg_component_info& part = info_.comp_info[c];
      blocks += static_cast<double>(part.width_in_blocks) * part.height_in_blocks;
    }
    return blocks;
  }
  // Whether each component was in a scan; without one it would be grey.
  bool complete() const {
    return !several_scans() || progress_.seen == (1U << static_cast<unsigned>(info_.num_components)) - 1;
  }
  bool several_scans() const {
    return info_.progressive_mode != 0 || info_.comps_in_scan < info_.num_components;
  }

 private:
  struct Errors {
    jpeg_error_mgr manager;
    std::jmp_buf jump;
    std::array<char, JMSG_LENGTH_MAX> message;
  };

  struct Progress {
    jpeg_progress_mgr manager;
    unsigned seen;  // a bit for each component
  };

  static void leave(j_common_ptr info) {
    auto* errors = reinterpret_cast<Errors*>(info->err);
    (*info->err->format_message)(info, errors->message.data());
    std::longjmp(errors->jump, 1);
  }
  static void on_error(j_common_ptr info) { leave(info); }
  static void on_output(j_common_ptr) {}

  // After these warnings libjpeg goes on with grey for what is missing, or with what it guesses.
  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
      case JWRN_JPEG_EOF:
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_MUST_RESYNC:
      case JWRN_ARITH_BAD_CODE:
      case JWRN_BOGUS_PROGRESSION:
        leave(info);
        break;
      default:
        break;
    }
  }

  // A malicious file can repeat scans of a large picture for minutes; a usual one has ten.
  static void on_progress(j_common_ptr info) {
    constexpr int most_scans = 100;
    auto* self = reinterpret_cast<j_decompress_ptr>(info);
    auto* progress = reinterpret_cast<Progress*>(info->progress);
    for (int i = 0; i < self->comps_in_scan; ++i)
      progress->seen |= 1U << static_cast<unsigned>(self->cur_comp_info[i]->component_index);
    if (self->input_scan_number <= most_scans) return;
    auto* errors = reinterpret_cast<Errors*>(info->err);
    std::snprintf(errors->message.data(), errors->message.size(), "has more than %d scans", most_scans);
    std::longjmp(errors->jump, 1);
  }

  std::span<const std::byte> bytes_;
  jpeg_decompress_struct info_{};
  Progress progress_{};
  Errors errors_{};
};

// a * b / 255, rounded, as Pillow does it.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// One row of CMYK samples, 255 for no ink as Adobe's programs write them, as red, green and blue.
void to_colours(const JSAMPLE* row, int64_t width, uint8_t* out, int64_t plane) {
  for (int64_t x = 0; x < width; ++x) {
    const int white = row[4 * x + 3];
    for (int64_t c = 0; c < 3; ++c)
      out[c * plane + x] =
          static_cast<uint8_t>(std::clamp(white - scaled(255 - row[4 * x + c], white), 0, 255));
  }
}

}  // namespace

Tensor decode_jpeg(const InputFile& file, std::span<const std::byte> bytes) {
  if (bytes.size() > std::numeric_limits<unsigned long>::max())
    file.fail_at(0, "JPEG: is larger than the 4 GiB that libjpeg reads on Windows");
  Decoder decoder(bytes);
  const auto demand = [&](bool done) {
    if (!done) file.fail_at(decoder.position(), fmt::format("JPEG: {}", decoder.message()));
  };
  demand(decoder.read_header(file.memory().left()));
  const int64_t width = decoder.width(), height = decoder.height(), samples = decoder.samples();
  const int64_t channels = std::min<int64_t>(samples, 3);
  // A block takes a bit at least, and a block has a fixed number of pixels: a header that promises
  // more is refused before memory is allocated.
  if (decoder.huffman() && decoder.blocks() > 8.0 * static_cast<double>(file.size())) {
    file.fail_at(decoder.position(), fmt::format("JPEG: {} x {} pixels cannot come from a file of {} bytes",
                                                 width, height, file.size()));
  }
  // Several scans are put together as 16-bit coefficients of all samples, which fill whole blocks.
  const double coefficients = decoder.several_scans() ? 128 * decoder.blocks() : 0;
  const auto extra =
      static_cast<int64_t>(coefficients / static_cast<double>(width) / static_cast<double>(height));
  check_picture_memory(file, width, height, channels + (decoder.several_scans() ? extra + 1 : 0));

  demand(decoder.start());
  if (!decoder.complete()) file.fail_at(decoder.position(), "JPEG: a component has no scan");
  const Tensor image = empty({channels, height, width}, {.dtype = uint8, .device = Device()});
  auto* out = image.data<uint8_t>();
  const int64_t plane = width * height;
  std::vector<JSAMPLE> row(static_cast<std::size_t>(width * samples));
  for (int64_t y = 0; y < height; ++y, out += width) {
    demand(decoder.read_row(row.data()));
    if (decoder.four()) {
      to_colours(row.data(), width, out, plane);
    } else {
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t x = 0; x < width; ++x)
          out[c * plane + x] = row[static_cast<std::size_t>(x * channels + c)];
    }
  }
  demand(decoder.finish());
  return image;
}

}  // namespace pleat::data
