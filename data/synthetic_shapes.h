#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pleat::data {

/// Side of a synthetic image in pixels, and bytes of its three planes; the sizes of CIFAR-10.
inline constexpr int synthetic_image_size = 32;
inline constexpr int synthetic_image_bytes = 3 * synthetic_image_size * synthetic_image_size;
inline constexpr int synthetic_classes = 10;

/// The two disjoint streams of images of one seed: no image belongs to both.
enum class SyntheticSplit : uint8_t { train, test };

/// One image: planes red, green, blue of 32 x 32 bytes, rows from top to bottom; and its class in [0, 10).
struct SyntheticImage {
  std::array<uint8_t, synthetic_image_bytes> pixels;
  uint8_t label;
};

/// Names of the ten classes; the index in this array is the label.
const std::array<std::string, synthetic_classes>& synthetic_shape_names();

/// Class of image `index`. Every ten consecutive images that start at a multiple of ten show each class once,
/// in an order that differs from ten to ten.
/// Throws ValueError if `index` is negative.
int synthetic_shape_label(uint64_t seed, SyntheticSplit split, int64_t index);

/// Draws image `index` of a stream: one shape of random position, size, rotation, proportions and colours,
/// over a textured, noisy background with small distractors.
///
/// A pure function of its arguments: images can be made in any order and by any number of threads. It
/// computes in integers only, so that the bytes are the same with every compiler, flag and processor.
///
/// Hard for a linear model (15 % test accuracy), easy for a small network of three convolutions (98 % after
/// 5 epochs): docs/measurements.md, section "Synthetic shapes".
/// Throws ValueError if `index` is negative.
SyntheticImage synthetic_shape(uint64_t seed, SyntheticSplit split, int64_t index);

struct SyntheticShapesOptions {
  int64_t train = 10'000;  ///< images of the training stream, [0, train)
  int64_t test = 2'000;    ///< images of the test stream, [0, test)
  uint64_t seed = 1;
};

/// Writes the set into `directory` (made when missing) in CIFAR-10's binary format: `data_batch_1.bin` and
/// following with 10,000 records each (the last one with the rest), `test_batch.bin`, and the class names in
/// `batches.meta.txt`. A record is one byte of label and 3,072 bytes of pixels. Existing files of these names
/// are replaced. Returns the paths written.
///
/// Throws ValueError if a count is negative or larger than 10,000,000; FileError if a file cannot be written,
/// or if the directory holds a `data_batch_*.bin` of a higher number, which a reader would take for a part of
/// this set.
std::vector<std::filesystem::path> write_synthetic_shapes(const std::filesystem::path& directory,
                                                          const SyntheticShapesOptions& options = {});

}  // namespace pleat::data
