#include <algorithm>
#include <cmath>
#include <vector>

#include <png.h>

#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/data/image.h"

namespace pleat::data {
namespace {

uint8_t byte_of(double value) {
  check<ValueError>(!std::isnan(value), "encode_png: the image has NaN");
  return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

}  // namespace

std::string encode_png(const Tensor& image) {
  check<ShapeError>(image.rank() == 3 && (image.size(0) == 1 || image.size(0) == 3),
                    "encode_png: an image must be [1 or 3, height, width], got {}", image);
  check<ValueError>(image.numel() > 0, "encode_png: an image must have pixels, got {}", image);
  check<DTypeError>(image.dtype() == uint8 || is_floating(image.dtype()),
                    "encode_png: an image must be uint8, or floating numbers from 0 to 1, got {}", image);
  const int64_t channels = image.size(0), pixels = image.size(1) * image.size(2);
  std::vector<uint8_t> planes;
  if (image.dtype() == uint8)
    planes = ops::to_device(image, Device{}).to_vector<uint8_t>();
  else
    for (const double value : ops::cast(ops::to_device(image, Device{}), float64).to_vector<double>())
      planes.push_back(byte_of(value));
  std::vector<uint8_t> bytes(planes.size());
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t pixel = 0; pixel < pixels; ++pixel)
      bytes[static_cast<std::size_t>(pixel * channels + c)] =
          planes[static_cast<std::size_t>(c * pixels + pixel)];

  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.size(1));
  png.width = static_cast<png_uint_32>(image.size(2));
  png.format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);  // at most
  std::string file(size, '\0');
  const int written = png_image_write_to_memory(&png, file.data(), &size, 0, bytes.data(), 0, nullptr);
  check<ValueError>(written != 0, "encode_png: libpng: {}", png.message);
  file.resize(size);
  return file;
}

void write_png(const std::filesystem::path& path, const Tensor& image) {
  write_file("write_png", path, encode_png(image));
}

}  // namespace pleat::data
