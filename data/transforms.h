#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pleat/core/base/argument.h"
#include "pleat/core/base/required.h"
#include "pleat/core/tensor/shape.h"
#include "pleat/data/dataset.h"

/// Changes to batches on their way from a data set to a network. Each random transform draws from
/// numbers that depend on (seed, epoch, sample, position in the list) alone, so a batch is the same
/// in every thread. The numbers are drawn on the host. Images are changed on their device
/// (ops/image/), on a GPU in one launch for each transform.
///
/// What moves the pictures (crops, flips, affine maps) moves with them
///   - masks, targets int64 [B, H, W] of the pictures' size: pixels are the nearest ones, and those that come
///     in from outside are -100, which cross_entropy ignores;
///   - boxes, `extras["boxes"]` [K, 5] and their "labels" [K] as a DetectionFolder gives them: each is the
///     least upright box around what was in it. It is cut off where the picture is, and left out where less
///     than a pixel is left. The host computes them; on a GPU it waits.

namespace pleat::data {

/// Random numbers of the samples of a batch, for one transform.
class SampleRandom {
 public:
  /// `indices` are the samples' places in the data set, in a loader with a sampler those in the epoch;
  /// `position` is the transform's place in its list.
  SampleRandom(uint64_t seed, int64_t epoch, std::span<const int64_t> indices, int64_t position)
      : seed_(seed), epoch_(epoch), indices_(indices), position_(position) {}

  /// Uniform on [0, 1): the `draw`-th number of sample `i` of the batch.
  double uniform(int64_t i, int64_t draw = 0) const;
  /// Uniform on 0 ... range-1.
  int64_t below(int64_t range, int64_t i, int64_t draw = 0) const;

 private:
  uint64_t seed_;
  int64_t epoch_;
  std::span<const int64_t> indices_;
  int64_t position_;
};

using Transform = std::function<void(Batch&, const SampleRandom&)>;

/// Applies one transform after the other.
void apply(std::span<const Transform> transforms, Batch& batch, uint64_t seed, int64_t epoch,
           std::span<const int64_t> indices);

/// Inputs as float32, bytes divided by 255; then (x - mean) / std for each channel of [B, C, ...].
/// Throws ShapeError when the number of channels differs, ValueError for a std of 0, and for bytes
/// with a mean above 1, which is one of numbers up to 255.
Transform normalize(RealList mean, RealList std);
/// The same without mean and std.
Transform to_float();

/// Moves each image [C, H, W] by up to `padding` pixels in both directions; the new pixels are 0
/// (or reflected).
struct RandomCropOptions {
  int64_t padding = 4;
  bool reflect = false;
};
Transform random_crop(RandomCropOptions options = {});
/// Mirrors each image left to right with probability `p`.
Transform random_horizontal_flip(Real p = 0.5);
/// Mirrors each image top to bottom with probability `p`.
Transform random_vertical_flip(Real p = 0.5);
/// Turns each image around its centre by an angle uniform on [-degrees, degrees]: random_affine({.degrees}).
Transform random_rotation(Real degrees);
/// Turns, moves, magnifies and shears each image, about its centre, with numbers that are uniform on their
/// ranges. Pixels are read between pixels (bilinear), bytes rounded.
struct RandomAffineOptions {
  double degrees = 0;                 ///< turned by up to so many, either way
  double translate = 0;               ///< moved by up to so large a share of the height and of the width
  std::array<double, 2> scale{1, 1};  ///< the least and the largest magnification
  double shear = 0;                   ///< rows are shifted against each other: the angle, in degrees below 90
  bool repeat_edge = false;           ///< what comes in from outside is the nearest pixel, else 0
};
Transform random_affine(RandomAffineOptions options);

/// Cuts a box out of each image and makes it `size` (bilinear, without a filter where that makes it smaller).
/// Its outermost pixels are mixed with those beside it. The box has `area` of the image's pixels, and is
/// `ratio` times as wide as high; both are drawn uniformly, the ratio on a logarithmic scale. Where ten such
/// boxes do not fit, it is the largest in the middle whose ratio is in the range. (Szegedy et al.,
/// arXiv:1409.4842; as PyTorch's RandomResizedCrop.)
struct RandomResizedCropOptions {
  Required<PerDim> size;  ///< of the results: one number, or {height, width}
  std::array<double, 2> area{0.08, 1};
  std::array<double, 2> ratio{3.0 / 4, 4.0 / 3};
};
Transform random_resized_crop(RandomResizedCropOptions options);

/// Sets a box of each image to 0 with probability `p`. Area and ratio are as those of
/// RandomResizedCropOptions; an image in which ten boxes do not fit stays as it is. (Zhong et al.,
/// arXiv:1708.04896.)
struct RandomErasingOptions {
  double p = 0.5;
  std::array<double, 2> area{0.02, 0.33};
  std::array<double, 2> ratio{0.3, 3.3};
};
Transform random_erasing(RandomErasingOptions options = {});
/// Sets a square of `size` pixels, centred anywhere, to 0. (DeVries and Taylor, arXiv:1708.04552.)
Transform cutout(Integer size);
/// Multiplies brightness and contrast, and mixes with grey (saturation), each by a factor uniform on
/// [1 - value, 1 + value]. For float images of 3 channels [B, 3, H, W] before normalisation.
struct ColorJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
};
Transform color_jitter(ColorJitterOptions options);

/// Mixes each sample with another of its batch, x = l x + (1 - l) x', with l from Beta(alpha,
/// alpha). The targets are mixed in the same way and become probabilities [B, classes] float32.
/// (Zhang et al., arXiv:1710.09412.)
struct MixOptions {
  /// Whether labels on a GPU are checked, for which the host waits at each batch. Without the
  /// check, a label that is no class has probability 0 for all classes.
  bool check_target = true;
};
Transform mixup(Real alpha, Integer classes, MixOptions options = {});
/// Replaces a box of each image by that of another of its batch and mixes targets by area.
/// (Yun et al., arXiv:1905.04899.)
Transform cutmix(Real alpha, Integer classes, MixOptions options = {});

}  // namespace pleat::data
