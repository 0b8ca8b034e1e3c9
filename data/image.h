#pragma once

#include <filesystem>
#include <string>

#include "pleat/core/files/read_options.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::data {

/// Reads a picture as [C, H, W] uint8, with one channel for grey pictures and three (red, green, blue) for
/// all others.
///
/// PNG of every kind, JPEG (where Pleat was built with libjpeg-turbo) and PGM/PPM (P2, P3, P5, P6),
/// told apart by their content. Samples of other depths are scaled to 0-255, palettes are looked
/// up, transparency is dropped, CMYK becomes colours as Pillow makes them. The EXIF orientation of
/// a JPEG is ignored, as in torchvision's folders; so are bytes that follow a picture. Throws
/// FileError naming file, offset and cause: none of these formats, damaged, too short, or larger
/// than `options` allow.
Tensor read_image(const std::filesystem::path& path, ReadOptions options = {});

/// Reads a PNG file in which a pixel's number is its class, of a palette or grey, as [H, W] uint8: the
/// numbers as they are in the file (Pillow's np.array(Image.open(path))). Throws FileError as read_image, and
/// for other formats, colours without a palette and more than 8 bits.
Tensor read_mask(const std::filesystem::path& path, ReadOptions options = {});

/// The bytes of a PNG file of an image [C, H, W] with 1 or 3 channels: uint8, or floating numbers from 0
/// to 1, beyond which they are held at these ends. Throws ShapeError for other shapes, ValueError for an
/// image without pixels or NaN, DTypeError for other types.
std::string encode_png(const Tensor& image);
/// Writes an image as a PNG file, as encode_png. Throws FileError, too.
void write_png(const std::filesystem::path& path, const Tensor& image);

}  // namespace pleat::data
