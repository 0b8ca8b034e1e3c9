#include "pleat/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/random/philox.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/image/image.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::data {
namespace {

/// An upper bound of distances and sizes, larger than any image.
constexpr int64_t most_pixels = int64_t{1} << 30;

void check_images(const char* op, const Tensor& x) {
  check<ShapeError>(x.rank() == 4, "{}: needs images [B, C, H, W], got {}", op, x);
  check<DTypeError>(x.dtype() == uint8 || x.dtype() == float32, "{}: needs uint8 or float32 images, got {}",
                    op, x);
}

void check_float_images(const char* op, const Tensor& x) {
  check<DTypeError>(x.dtype() == float32,
                    "{}: needs float32 images (put to_float or normalize before it), got {}", op, x);
}

void check_probability(const char* op, double p) {
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
}

/// A value for each image of the batch.
template <class F>
auto for_images(const Batch& batch, const F& f) {
  std::vector<decltype(f(int64_t{0}))> values;
  for (int64_t i = 0; i < batch.size(); ++i) values.push_back(f(i));
  return values;
}

/// Boxes [K, 5] where the pictures of height x width pixels show them that `maps` make, and the rows of those
/// of which something is left.
std::pair<Tensor, std::vector<int64_t>> moved_boxes(const Tensor& boxes, std::span<const ops::ImageMap> maps,
                                                    int64_t height, int64_t width) {
  check<ShapeError>(boxes.rank() == 2 && boxes.size(1) == 5, "boxes: must be [K, 5], got {}", boxes);
  const std::vector<double> from = boxes.to_vector<double>();
  std::vector<float> to;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < boxes.size(0); ++row) {
    const double* box = from.data() + 5 * row;
    check<IndexError>(box[0] >= 0 && box[0] < static_cast<double>(maps.size()),
                      "boxes: there is no picture {} in a batch of {}", box[0], maps.size());
    const auto& [down, right] = maps[static_cast<std::size_t>(box[0])];
    const double determinant = double{down[0]} * right[1] - double{down[1]} * right[0];
    double x1 = most_pixels, y1 = most_pixels, x2 = -x1, y2 = -y1;
    for (const double x : {box[1], box[3]})
      for (const double y : {box[2], box[4]}) {
        // The corner's place, from centres of pixels as maps count, back through the map.
        const double v = y - 0.5 - down[2], u = x - 0.5 - right[2];
        const double h = (right[1] * v - down[1] * u) / determinant + 0.5;
        const double w = (down[0] * u - right[0] * v) / determinant + 0.5;
        x1 = std::min(x1, w), x2 = std::max(x2, w), y1 = std::min(y1, h), y2 = std::max(y2, h);
      }
    x1 = std::max(x1, 0.0), x2 = std::min(x2, static_cast<double>(width));
    y1 = std::max(y1, 0.0), y2 = std::min(y2, static_cast<double>(height));
    if (!(x2 - x1 >= 1 && y2 - y1 >= 1)) continue;
    for (const double number : {box[0], x1, y1, x2, y2}) to.push_back(static_cast<float>(number));
    rows.push_back(row);
  }
  const auto count = static_cast<int64_t>(rows.size());
  return {from_vector(to, {count, 5}, boxes.device()), rows};
}

/// The pictures as change(images, nearest) makes them, of which `maps` say the same, and with them their
/// masks and boxes.
template <class F>
void move(Batch& batch, std::span<const ops::ImageMap> maps, const F& change) {
  constexpr int64_t outside = -100;
  const Shape shape = batch.inputs.shape();
  batch.inputs = change(batch.inputs, false);
  if (const Tensor& mask = batch.targets;
      mask.defined() && mask.dtype() == int64 && mask.shape() == Shape{shape[0], shape[2], shape[3]}) {
    const Tensor above_0 = unsqueeze(ops::cast(mask - outside, float32), 1);
    batch.targets = ops::cast(squeeze(change(above_0, true), 1), int64) + outside;
  }
  const auto boxes = batch.extras.find("boxes");
  if (boxes == batch.extras.end()) return;
  const auto [moved, rows] = moved_boxes(boxes->second, maps, batch.inputs.size(2), batch.inputs.size(3));
  boxes->second = moved;
  if (const auto labels = batch.extras.find("labels"); labels != batch.extras.end())
    labels->second = ops::take_rows(labels->second, rows);
}

void shift(Batch& batch, const std::vector<ops::ImageShift>& shifts, bool reflect = false) {
  const auto height = static_cast<float>(batch.inputs.size(2)),
             width = static_cast<float>(batch.inputs.size(3));
  std::vector<ops::ImageMap> maps;
  for (const ops::ImageShift& by : shifts) {
    const auto down = static_cast<float>(by.down), right = static_cast<float>(by.right);
    maps.push_back(
        {.row = {by.mirror_rows ? -1.0F : 1.0F, 0, down + (by.mirror_rows ? height - 1 : 0)},
         .column = {0, by.mirror_columns ? -1.0F : 1.0F, right + (by.mirror_columns ? width - 1 : 0)}});
  }
  move(batch, maps, [&](const Tensor& images, bool) { return ops::shift_images(images, shifts, reflect); });
}

void map(Batch& batch, const std::vector<ops::ImageMap>& maps, ops::ImageMapOptions options) {
  move(batch, maps, [&](const Tensor& images, bool nearest) {
    options.nearest = nearest;
    return ops::map_images(images, maps, options);
  });
}

Transform flip(const char* op, double p, bool vertical) {
  check_probability(op, p);
  return [=](Batch& batch, const SampleRandom& random) {
    check_images(op, batch.inputs);
    shift(batch, for_images(batch, [&](int64_t i) {
            const bool mirrored = random.uniform(i) < p;
            return ops::ImageShift{.mirror_columns = mirrored && !vertical,
                                   .mirror_rows = mirrored && vertical};
          }));
  };
}

/// Targets as probabilities [B, classes].
Tensor probabilities(const char* op, const Tensor& targets, int64_t classes, const MixOptions& options) {
  check<ShapeError>(
      targets.defined() && (targets.rank() == 1 || (targets.rank() == 2 && targets.size(1) == classes)),
      "{}: needs targets [B] of {} classes or their probabilities", op, classes);
  if (targets.rank() == 2) return ops::cast(targets, float32);
  return one_hot(targets, classes, float32, {.check_index = options.check_target});
}

/// Mixes images and the probabilities of their classes.
void mix(Batch& batch, const Tensor& targets, const std::vector<ops::ImageMix>& images,
         const std::vector<float>& shares) {
  // Rows of classes are images of one row.
  const Shape rows = {targets.size(0), 1, 1, targets.size(1)};
  std::vector<ops::ImageMix> of_targets;
  for (std::size_t i = 0; i < images.size(); ++i)
    of_targets.push_back({.partner = images[i].partner, .share = shares[i]});
  const Tensor plain = ops::to_format(targets, MemoryFormat::contiguous);
  const Tensor mixed = ops::mix_images(reshape(plain, rows), of_targets);
  batch = {ops::mix_images(batch.inputs, images), reshape(mixed, targets.shape())};
}

/// The logarithm of a Gamma(alpha) by Marsaglia and Tsang's method (ACM TOMS 26, 2000), raised to
/// alpha >= 1 by Gamma(a) = Gamma(a + 1) U^(1/a): for a small alpha the number itself would be 0.
double log_gamma_draw(double alpha, const SampleRandom& random, int64_t i, int64_t& draw) {
  const double raise = alpha < 1 ? std::log(random.uniform(i, draw++) + 1e-300) / std::max(alpha, 1e-300) : 0;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform(i, draw++)));
    const double normal = radius * std::cos(2 * 3.14159265358979323846 * random.uniform(i, draw++));
    const double v = std::pow(1 + c * normal, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.uniform(i, draw++)) < 0.5 * normal * normal + d - d * v + d * std::log(v))
      return raise + std::log(d * v);
  }
}

/// Beta(alpha, alpha): a / (a + b) of two Gamma(alpha).
double beta(double alpha, const SampleRandom& random, int64_t i, int64_t& draw) {
  const double a = log_gamma_draw(alpha, random, i, draw);
  const double b = log_gamma_draw(alpha, random, i, draw);
  return 1 / (1 + std::exp(b - a));
}

void check_range(const char* op, const char* name, const std::array<double, 2>& range, double most) {
  check<ValueError>(range[0] > 0 && range[0] <= range[1] && range[1] <= most,
                    "{}: {} must be {{least, most}}, above 0 and at most {}, got {{{}, {}}}", op, name, most,
                    range[0], range[1]);
}

/// A box in images of height x width pixels that has some share of their area and some ratio of width to
/// height, or, in ten attempts, none.
std::optional<ops::ImageBox> draw_box(int64_t height, int64_t width, const std::array<double, 2>& area,
                                      const std::array<double, 2>& ratio, const SampleRandom& random,
                                      int64_t i, int64_t draw) {
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * random.uniform(i, draw++);
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double pixels =
        static_cast<double>(height) * static_cast<double>(width) * uniform(area[0], area[1]);
    const double wide = std::exp(uniform(std::log(ratio[0]), std::log(ratio[1])));
    const double w = std::round(std::sqrt(pixels * wide));
    const double h = std::round(std::sqrt(pixels / wide));
    if (h < 1 || w < 1 || h > static_cast<double>(height) || w > static_cast<double>(width)) continue;
    const auto rows = static_cast<int64_t>(h), columns = static_cast<int64_t>(w);
    const int64_t top = random.below(height - rows + 1, i, draw++);
    const int64_t left = random.below(width - columns + 1, i, draw++);
    return ops::ImageBox{top, left, top + rows, left + columns};
  }
  return std::nullopt;
}

/// The largest box in the middle whose ratio of width to height is in the range.
ops::ImageBox middle_box(int64_t height, int64_t width, const std::array<double, 2>& ratio) {
  const double own = static_cast<double>(width) / static_cast<double>(height);
  int64_t rows = height, columns = width;
  if (own < ratio[0]) rows = std::llround(static_cast<double>(width) / ratio[0]);
  if (own > ratio[1]) columns = std::llround(static_cast<double>(height) * ratio[1]);
  rows = std::clamp<int64_t>(rows, 1, height);
  columns = std::clamp<int64_t>(columns, 1, width);
  const int64_t top = (height - rows) / 2, left = (width - columns) / 2;
  return {top, left, top + rows, left + columns};
}

/// The map that shows `box` in `size` pixels: edges meet edges.
ops::ImageMap map_of(const ops::ImageBox& box, int64_t height, int64_t width) {
  const auto line = [](int64_t begin, int64_t end, int64_t size) {
    const double step = static_cast<double>(end - begin) / static_cast<double>(size);
    return std::pair(static_cast<float>(step),
                     static_cast<float>(static_cast<double>(begin) + step / 2 - 0.5));
  };
  const auto [down, top] = line(box.top, box.bottom, height);
  const auto [right, left] = line(box.left, box.right, width);
  return {.row = {down, 0, top}, .column = {0, right, left}};
}

/// The map of an image that is sheared, turned, magnified and then moved by (down, right) pixels, about its
/// centre; angles in radians. So the way back: a pixel's distance from the centre, turned and sheared back.
ops::ImageMap affine_map(int64_t height, int64_t width, double angle, double shear, double scale, double down,
                         double right) {
  const double y0 = static_cast<double>(height - 1) / 2, x0 = static_cast<double>(width - 1) / 2;
  const double c = std::cos(angle) / scale, s = std::sin(angle) / scale, t = std::tan(shear);
  const std::array<double, 2> row{c, -s}, column{s - t * c, c + t * s};
  const auto line = [&](const std::array<double, 2>& of, double centre) {
    const double first = centre - of[0] * (y0 + down) - of[1] * (x0 + right);
    return std::array{static_cast<float>(of[0]), static_cast<float>(of[1]), static_cast<float>(first)};
  };
  return {.row = line(row, y0), .column = line(column, x0)};
}

void check_mix(const char* op, double alpha, int64_t classes) {
  check<ValueError>(alpha > 0 && std::isfinite(alpha), "{}: alpha must be above 0 and finite, got {}", op,
                    alpha);
  check<ValueError>(classes >= 1, "{}: classes must be at least 1, got {}", op, classes);
}

}  // namespace

double SampleRandom::uniform(int64_t i, int64_t draw) const {
  const auto high = (static_cast<uint64_t>(epoch_) << 32) | (static_cast<uint64_t>(position_) << 24) |
                    (static_cast<uint64_t>(draw) & 0xffffff);
  const auto words = philox(seed_, static_cast<uint64_t>(indices_[static_cast<std::size_t>(i)]), high);
  return unit_double(words[0], words[1]);
}

int64_t SampleRandom::below(int64_t range, int64_t i, int64_t draw) const {
  return std::min(range - 1, static_cast<int64_t>(uniform(i, draw) * static_cast<double>(range)));
}

void apply(std::span<const Transform> transforms, Batch& batch, uint64_t seed, int64_t epoch,
           std::span<const int64_t> indices) {
  for (std::size_t t = 0; t < transforms.size(); ++t)
    check<ValueError>(transforms[t] != nullptr, "transforms: number {} is empty", t);
  for (std::size_t t = 0; t < transforms.size(); ++t)
    transforms[t](batch, SampleRandom(seed, epoch, indices, static_cast<int64_t>(t)));
}

Transform normalize(RealList means, RealList stds) {
  std::vector<float> mean(means.begin(), means.end());
  std::vector<float> std(stds.begin(), stds.end());
  check<ShapeError>(mean.size() == std.size() && !mean.empty(), "normalize: {} means, but {} stds",
                    mean.size(), std.size());
  for (const float s : std)
    check<ValueError>(s > 0 && std::isfinite(s) && std::isfinite(1 / s),
                      "normalize: std must be positive, got {}", s);
  for (const float m : mean) check<ValueError>(std::isfinite(m), "normalize: mean must be finite, got {}", m);
  return [mean = std::move(mean), std = std::move(std)](Batch& batch, const SampleRandom&) {
    const auto channels = static_cast<int64_t>(mean.size());
    check<ShapeError>(
        batch.inputs.rank() >= 2 && batch.inputs.size(1) == channels,
        "normalize: needs a mean and a std for each channel of images [B, C, ...], got {} of each for {}",
        channels, batch.inputs);
    check<DTypeError>(batch.inputs.dtype() == uint8 || batch.inputs.dtype() == float32,
                      "normalize: needs uint8 or float32 images, got {}", batch.inputs);
    const bool bytes = batch.inputs.dtype() == uint8;
    for (const float m : mean)
      check<ValueError>(
          !bytes || m <= 1,
          "normalize: a mean of {} is none of bytes, which become numbers from 0 to 1 first; give "
          "mean and std as shares of 255, as channel_statistics does",
          m);
    const float unit = bytes ? 1.0F / 255 : 1;
    std::vector<float> scale, shift;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      scale.push_back(unit / std[c]);
      shift.push_back(-mean[c] / std[c]);
    }
    batch.inputs = ops::scale_channels(batch.inputs, scale, shift);
  };
}

Transform to_float() {
  return [](Batch& batch, const SampleRandom&) {
    const Tensor x = ops::to_format(batch.inputs, MemoryFormat::contiguous);
    if (x.dtype() != uint8) {
      batch.inputs = ops::cast(x, float32);
      return;
    }
    // Treats all elements as one channel.
    const Tensor y =
        ops::scale_channels(reshape(x, {1, 1, x.numel()}), std::vector{1.0F / 255}, std::vector{0.0F});
    batch.inputs = reshape(y, x.shape());
  };
}

Transform random_crop(RandomCropOptions options) {
  check<ValueError>(options.padding >= 0 && options.padding <= most_pixels,
                    "random_crop: padding must be in [0, {}], got {}", most_pixels, options.padding);
  return [options](Batch& batch, const SampleRandom& random) {
    check_images("random_crop", batch.inputs);
    check<ShapeError>(
        !options.reflect || options.padding < std::min(batch.inputs.size(2), batch.inputs.size(3)),
        "random_crop: reflecting {} pixels needs a larger image than {}", options.padding,
        batch.inputs.shape());
    const auto distance = [&](int64_t i, int64_t draw) {
      return random.below(2 * options.padding + 1, i, draw) - options.padding;
    };
    const auto shifts = for_images(
        batch, [&](int64_t i) { return ops::ImageShift{.down = distance(i, 0), .right = distance(i, 1)}; });
    shift(batch, shifts, options.reflect);
  };
}

Transform random_horizontal_flip(Real p) { return flip("random_horizontal_flip", p, false); }
Transform random_vertical_flip(Real p) { return flip("random_vertical_flip", p, true); }

Transform random_rotation(Real degrees) { return random_affine({.degrees = degrees}); }

Transform random_affine(RandomAffineOptions options) {
  static constexpr const char* op = "random_affine";
  const auto& o = options;
  check<ValueError>(o.degrees >= 0 && o.degrees <= 180, "{}: degrees must be in [0, 180], got {}", op,
                    o.degrees);
  check<ValueError>(o.translate >= 0 && o.translate <= 1, "{}: translate must be in [0, 1], got {}", op,
                    o.translate);
  check_range(op, "scale", o.scale, 1e6);
  check<ValueError>(o.shear >= 0 && o.shear < 90, "{}: shear must be in [0, 90), got {}", op, o.shear);
  return [options](Batch& batch, const SampleRandom& random) {
    check_images(op, batch.inputs);
    const int64_t height = batch.inputs.size(2), width = batch.inputs.size(3);
    const auto maps = for_images(batch, [&](int64_t i) {
      const auto either_way = [&](double most, int64_t draw) {
        return most * (2 * random.uniform(i, draw) - 1);
      };
      constexpr double radians = std::numbers::pi / 180;
      const double scale = options.scale[0] + (options.scale[1] - options.scale[0]) * random.uniform(i, 2);
      return affine_map(height, width, either_way(options.degrees, 0) * radians,
                        either_way(options.shear, 1) * radians, scale,
                        either_way(options.translate, 3) * static_cast<double>(height),
                        either_way(options.translate, 4) * static_cast<double>(width));
    });
    map(batch, maps, {.height = height, .width = width, .repeat_edge = options.repeat_edge});
  };
}

Transform random_resized_crop(RandomResizedCropOptions options) {
  static constexpr const char* op = "random_resized_crop";
  const std::vector<int64_t> size = options.size.get().expand(2, op, "size");
  for (const int64_t pixels : size)
    check<ValueError>(pixels >= 1 && pixels <= most_pixels, "{}: size must be in [1, {}], got {}", op,
                      most_pixels, pixels);
  check_range(op, "area", options.area, 1);
  check_range(op, "ratio", options.ratio, 1e6);
  return [options, height = size[0], width = size[1]](Batch& batch, const SampleRandom& random) {
    check_images(op, batch.inputs);
    const int64_t rows = batch.inputs.size(2), columns = batch.inputs.size(3);
    check<ShapeError>(rows > 0 && columns > 0, "{}: the images have no pixels, got {}", op,
                      batch.inputs.shape());
    const auto maps = for_images(batch, [&](int64_t i) {
      const auto box = draw_box(rows, columns, options.area, options.ratio, random, i, 0);
      return map_of(box ? *box : middle_box(rows, columns, options.ratio), height, width);
    });
    map(batch, maps, {.height = height, .width = width, .repeat_edge = true});
  };
}

Transform random_erasing(RandomErasingOptions options) {
  static constexpr const char* op = "random_erasing";
  check_probability(op, options.p);
  check_range(op, "area", options.area, 1);
  check_range(op, "ratio", options.ratio, 1e6);
  return [options](Batch& batch, const SampleRandom& random) {
    check_images(op, batch.inputs);
    const auto boxes = for_images(batch, [&](int64_t i) {
      if (random.uniform(i, 0) >= options.p) return ops::ImageBox{};
      return draw_box(batch.inputs.size(2), batch.inputs.size(3), options.area, options.ratio, random, i, 1)
          .value_or(ops::ImageBox{});
    });
    batch.inputs = ops::erase_boxes(batch.inputs, boxes);
  };
}

Transform cutout(Integer size) {
  check<ValueError>(size >= 1 && size <= most_pixels, "cutout: size must be in [1, {}], got {}", most_pixels,
                    size);
  return [size](Batch& batch, const SampleRandom& random) {
    check_images("cutout", batch.inputs);
    batch.inputs = ops::erase_boxes(batch.inputs, for_images(batch, [&](int64_t i) {
                                      const int64_t top = random.below(batch.inputs.size(2), i, 0) - size / 2;
                                      const int64_t left =
                                          random.below(batch.inputs.size(3), i, 1) - size / 2;
                                      return ops::ImageBox{top, left, top + size, left + size};
                                    }));
  };
}

Transform color_jitter(ColorJitterOptions options) {
  for (const double value : {options.brightness, options.contrast, options.saturation})
    check<ValueError>(value >= 0 && value <= 1, "color_jitter: values must be in [0, 1], got {}", value);
  return [options](Batch& batch, const SampleRandom& random) {
    check_images("color_jitter", batch.inputs);
    check<ShapeError>(batch.inputs.size(1) == 3, "color_jitter: needs 3 channels, got {}",
                      batch.inputs.shape());
    check_float_images("color_jitter", batch.inputs);
    batch.inputs = ops::adjust_colors(
        batch.inputs, for_images(batch, [&](int64_t i) {
          const auto factor = [&](double value, int64_t draw) {
            return static_cast<float>(1 + value * (2 * random.uniform(i, draw) - 1));
          };
          return ops::ImageColors{factor(options.brightness, 0), factor(options.contrast, 1),
                                  factor(options.saturation, 2)};
        }));
  };
}

Transform mixup(Real alpha, Integer classes, MixOptions options) {
  check_mix("mixup", alpha, classes);
  return [=](Batch& batch, const SampleRandom& random) {
    check_float_images("mixup", batch.inputs);
    const Tensor targets = probabilities("mixup", batch.targets, classes, options);
    // Samples of any rank are images of one row.
    const Shape shape = batch.inputs.shape();
    std::vector<ops::ImageMix> mixes;
    std::vector<float> shares;
    for (int64_t i = 0; i < batch.size(); ++i) {
      int64_t draw = 0;
      const int64_t partner = random.below(batch.size(), i, draw++);
      shares.push_back(static_cast<float>(beta(alpha, random, i, draw)));
      mixes.push_back({.partner = partner, .share = shares.back()});
    }
    const int64_t sample = batch.size() == 0 ? 0 : batch.inputs.numel() / batch.size();
    batch.inputs =
        reshape(ops::to_format(batch.inputs, MemoryFormat::contiguous), {batch.size(), 1, 1, sample});
    mix(batch, targets, mixes, shares);
    batch.inputs = reshape(batch.inputs, shape);
  };
}

Transform cutmix(Real alpha, Integer classes, MixOptions options) {
  check_mix("cutmix", alpha, classes);
  return [=](Batch& batch, const SampleRandom& random) {
    check_images("cutmix", batch.inputs);
    check_float_images("cutmix", batch.inputs);
    check<ShapeError>(batch.inputs.size(2) > 0 && batch.inputs.size(3) > 0,
                      "cutmix: the images have no pixels, got {}", batch.inputs.shape());
    const Tensor targets = probabilities("cutmix", batch.targets, classes, options);
    const int64_t height = batch.inputs.size(2);
    const int64_t width = batch.inputs.size(3);
    std::vector<ops::ImageMix> mixes;
    std::vector<float> shares;
    for (int64_t i = 0; i < batch.size(); ++i) {
      int64_t draw = 0;
      const int64_t partner = random.below(batch.size(), i, draw++);
      const double cut = std::sqrt(1 - beta(alpha, random, i, draw));
      const auto range = [&](int64_t size) {
        const int64_t centre = random.below(size, i, draw++);
        const auto half = static_cast<int64_t>(cut * static_cast<double>(size)) / 2;
        return std::pair(std::max<int64_t>(centre - half, 0), std::min(centre + half, size));
      };
      const auto [top, bottom] = range(height);
      const auto [left, right] = range(width);
      mixes.push_back({.partner = partner, .box = {top, left, bottom, right}});
      shares.push_back(1 - static_cast<float>((bottom - top) * (right - left)) /
                               static_cast<float>(height * width));
    }
    mix(batch, targets, mixes, shares);
  };
}

}  // namespace pleat::data
