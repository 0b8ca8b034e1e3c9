#include "pleat/data/transforms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/philox.h"

namespace pleat::data {
namespace {

/// Images of a batch as planes of rows.
struct Planes {
  int64_t images, channels, height, width;

  Planes(const char* op, const Tensor& x) {
    check<ShapeError>(x.rank() == 4, "{}: needs images [B, C, H, W], got {}", op, x.describe());
    images = x.size(0);
    channels = x.size(1);
    height = x.size(2);
    width = x.size(3);
  }
  int64_t plane() const { return height * width; }
  int64_t image() const { return channels * plane(); }
};

/// The inputs in row-major order, ready to be written to: a data set gives every batch tensors of its own.
Tensor plain(const Tensor& x) { return ops::to_format(x, MemoryFormat::contiguous); }

Tensor float_inputs(const char* op, const Batch& batch) {
  check<DTypeError>(batch.inputs.dtype() == float32,
                    "{}: needs float32 images (put to_float or normalize before it), got {}", op,
                    batch.inputs.describe());
  return plain(batch.inputs);
}

void check_probability(const char* op, double p) {
  check<ValueError>(p >= 0 && p <= 1, "{}: the probability must be in [0, 1], got {}", op, p);
}

/// Where row or column i of a moved image comes from; -1 outside.
int64_t source(int64_t i, int64_t size, bool reflect) {
  if (i >= 0 && i < size) return i;
  if (!reflect) return -1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

template <class T>
void move_image(const Planes& p, const T* from, T* to, int64_t down, int64_t right, bool reflect) {
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t h = 0; h < p.height; ++h) {
      T* row = to + (c * p.height + h) * p.width;
      const int64_t sh = source(h + down, p.height, reflect);
      for (int64_t w = 0; w < p.width; ++w) {
        const int64_t sw = source(w + right, p.width, reflect);
        row[w] = sh < 0 || sw < 0 ? T(0) : from[(c * p.height + sh) * p.width + sw];
      }
    }
}

template <class F>
void with_pixels(const char* op, const Tensor& x, F f) {
  if (x.dtype() == uint8) return f(Type<uint8_t>{});
  if (x.dtype() == float32) return f(Type<float>{});
  fail<DTypeError>("{}: needs uint8 or float32 images, got {}", op, x.describe());
}

Transform flip(const char* op, double p, bool vertical) {
  check_probability(op, p);
  return [=](Batch& batch, const SampleRandom& random) {
    const Planes planes(op, batch.inputs);
    const Tensor x = plain(batch.inputs);
    with_pixels(op, x, [&]<class T>(Type<T>) {
      for (int64_t i = 0; i < planes.images; ++i) {
        if (random.uniform(i) >= p) continue;
        T* image = x.data<T>() + i * planes.image();
        for (int64_t c = 0; c < planes.channels; ++c, image += planes.plane()) {
          if (vertical)
            for (int64_t h = 0; h < planes.height / 2; ++h)
              std::swap_ranges(image + h * planes.width, image + (h + 1) * planes.width,
                               image + (planes.height - 1 - h) * planes.width);
          else
            for (int64_t h = 0; h < planes.height; ++h)
              std::reverse(image + h * planes.width, image + (h + 1) * planes.width);
        }
      }
    });
    batch.inputs = x;
  };
}

/// Targets as probabilities [B, classes].
Tensor probabilities(const char* op, const Tensor& targets, int64_t classes) {
  check<ShapeError>(
      targets.defined() && (targets.rank() == 1 || (targets.rank() == 2 && targets.size(1) == classes)),
      "{}: needs targets [B] of {} classes or their probabilities", op, classes);
  if (targets.rank() == 2) return ops::cast(targets, float32);
  const Tensor result = zeros({targets.size(0), classes});
  const std::vector<int64_t> labels = targets.to_vector<int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check<IndexError>(labels[i] >= 0 && labels[i] < classes, "{}: target {} is outside 0-{}", op, labels[i],
                      classes - 1);
    result.data<float>()[static_cast<int64_t>(i) * classes + labels[i]] = 1;
  }
  return result;
}

/// Beta(alpha, alpha) from two Gamma(alpha) by Marsaglia and Tsang's method (ACM TOMS 26, 2000), raised to
/// alpha >= 1 by Gamma(a) = Gamma(a + 1) U^(1/a).
double gamma(double alpha, const SampleRandom& random, int64_t i, int64_t& draw) {
  const double raise = alpha < 1 ? std::pow(random.uniform(i, draw++) + 1e-300, 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform(i, draw++)));
    const double normal = radius * std::cos(2 * 3.14159265358979323846 * random.uniform(i, draw++));
    const double v = std::pow(1 + c * normal, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.uniform(i, draw++)) < 0.5 * normal * normal + d - d * v + d * std::log(v))
      return raise * d * v;
  }
}

double beta(double alpha, const SampleRandom& random, int64_t i, int64_t& draw) {
  const double a = gamma(alpha, random, i, draw);
  const double b = gamma(alpha, random, i, draw);
  return a / (a + b);
}

void mix_row(float* to, const float* a, const float* b, float share, int64_t n) {
  for (int64_t k = 0; k < n; ++k) to[k] = share * a[k] + (1 - share) * b[k];
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
    transforms[t](batch, SampleRandom(seed, epoch, indices, static_cast<int64_t>(t)));
}

Transform normalize(std::vector<float> mean, std::vector<float> std) {
  check<ShapeError>(mean.size() == std.size() && !mean.empty(), "normalize: {} means, but {} stds",
                    mean.size(), std.size());
  for (const float s : std)
    check<ValueError>(s > 0 && std::isfinite(s), "normalize: std must be positive, got {}", s);
  return [mean = std::move(mean), std = std::move(std)](Batch& batch, const SampleRandom&) {
    const auto channels = static_cast<int64_t>(mean.size());
    check<ShapeError>(batch.inputs.rank() >= 2 && batch.inputs.size(1) == channels,
                      "normalize: needs [B, {}, ...], got {}", channels, batch.inputs.describe());
    const Tensor x = plain(batch.inputs);
    const Tensor y = empty(x.shape());
    const int64_t plane = x.numel() == 0 ? 0 : x.numel() / (x.size(0) * channels);
    const float unit = x.dtype() == uint8 ? 1.0F / 255 : 1;
    with_pixels("normalize", x, [&]<class T>(Type<T>) {
      const T* from = x.data<T>();
      float* to = y.data<float>();
      for (int64_t image = 0; image < x.size(0); ++image)
        for (std::size_t c = 0; c < mean.size(); ++c, from += plane, to += plane) {
          const float scale = unit / std[c];
          const float shift = -mean[c] / std[c];
          for (int64_t k = 0; k < plane; ++k) to[k] = static_cast<float>(from[k]) * scale + shift;
        }
    });
    batch.inputs = y;
  };
}

Transform to_float() {
  return [](Batch& batch, const SampleRandom&) {
    const Tensor x = plain(batch.inputs);
    const Tensor y = ops::cast(x, float32);
    if (x.dtype() == uint8)
      for (float& value : std::span(y.data<float>(), static_cast<std::size_t>(y.numel())))
        value *= 1.0F / 255;
    batch.inputs = y;
  };
}

Transform random_crop(RandomCropOptions options) {
  check<ValueError>(options.padding >= 0, "random_crop: padding must not be negative, got {}",
                    options.padding);
  return [options](Batch& batch, const SampleRandom& random) {
    const Planes planes("random_crop", batch.inputs);
    check<ShapeError>(!options.reflect || options.padding < std::min(planes.height, planes.width),
                      "random_crop: reflecting {} pixels needs a larger image than {}", options.padding,
                      batch.inputs.shape());
    const Tensor x = plain(batch.inputs);
    const Tensor y = empty_like(x);
    with_pixels("random_crop", x, [&]<class T>(Type<T>) {
      for (int64_t i = 0; i < planes.images; ++i) {
        const int64_t down = random.below(2 * options.padding + 1, i, 0) - options.padding;
        const int64_t right = random.below(2 * options.padding + 1, i, 1) - options.padding;
        move_image(planes, x.data<T>() + i * planes.image(), y.data<T>() + i * planes.image(), down, right,
                   options.reflect);
      }
    });
    batch.inputs = y;
  };
}

Transform random_horizontal_flip(double p) { return flip("random_horizontal_flip", p, false); }
Transform random_vertical_flip(double p) { return flip("random_vertical_flip", p, true); }

Transform cutout(int64_t size) {
  check<ValueError>(size >= 1, "cutout: size must be at least 1, got {}", size);
  return [size](Batch& batch, const SampleRandom& random) {
    const Planes planes("cutout", batch.inputs);
    const Tensor x = plain(batch.inputs);
    with_pixels("cutout", x, [&]<class T>(Type<T>) {
      for (int64_t i = 0; i < planes.images; ++i) {
        const int64_t top = random.below(planes.height, i, 0) - size / 2;
        const int64_t left = random.below(planes.width, i, 1) - size / 2;
        const int64_t first = std::clamp<int64_t>(left, 0, planes.width);
        const int64_t last = std::clamp<int64_t>(left + size, 0, planes.width);
        for (int64_t c = 0; c < planes.channels; ++c)
          for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + size, planes.height); ++h) {
            T* row = x.data<T>() + i * planes.image() + (c * planes.height + h) * planes.width;
            std::fill(row + first, row + last, T(0));
          }
      }
    });
    batch.inputs = x;
  };
}

Transform color_jitter(ColorJitterOptions options) {
  for (const double value : {options.brightness, options.contrast, options.saturation})
    check<ValueError>(value >= 0 && value <= 1, "color_jitter: values must be in [0, 1], got {}", value);
  return [options](Batch& batch, const SampleRandom& random) {
    const Planes planes("color_jitter", batch.inputs);
    check<ShapeError>(planes.channels == 3, "color_jitter: needs 3 channels, got {}", batch.inputs.shape());
    const Tensor x = float_inputs("color_jitter", batch);
    const int64_t n = planes.plane();
    for (int64_t i = 0; i < planes.images; ++i) {
      const auto factor = [&](double value, int64_t draw) {
        return static_cast<float>(1 + value * (2 * random.uniform(i, draw) - 1));
      };
      const float brightness = factor(options.brightness, 0);
      const float contrast = factor(options.contrast, 1);
      const float saturation = factor(options.saturation, 2);
      float* red = x.data<float>() + i * planes.image();
      float* green = red + n;
      float* blue = green + n;
      const auto grey = [&](int64_t k) {
        return 0.299F * red[k] + 0.587F * green[k] + 0.114F * blue[k];
      };  // BT.601
      double mean = 0;
      for (int64_t k = 0; k < n; ++k) mean += grey(k);
      const auto centre =
          static_cast<float>(mean / static_cast<double>(std::max<int64_t>(n, 1))) * brightness;
      for (int64_t k = 0; k < n; ++k) {
        const float g = grey(k);
        for (float* channel : {red + k, green + k, blue + k}) {
          const float saturated = (g + (*channel - g) * saturation) * brightness;
          *channel = std::clamp(centre + (saturated - centre) * contrast, 0.0F, 1.0F);
        }
      }
    }
    batch.inputs = x;
  };
}

Transform mixup(double alpha, int64_t classes) {
  check<ValueError>(alpha > 0 && classes >= 1, "mixup: needs alpha > 0 and classes >= 1, got {} and {}",
                    alpha, classes);
  return [=](Batch& batch, const SampleRandom& random) {
    const Tensor x = float_inputs("mixup", batch);
    const Tensor targets = probabilities("mixup", batch.targets, classes);
    const Tensor y = empty_like(x);
    const Tensor mixed = empty_like(targets);
    const int64_t images = x.size(0);
    const int64_t image = images == 0 ? 0 : x.numel() / images;
    for (int64_t i = 0; i < images; ++i) {
      int64_t draw = 0;
      const int64_t j = random.below(images, i, draw++);
      const auto share = static_cast<float>(beta(alpha, random, i, draw));
      mix_row(y.data<float>() + i * image, x.data<float>() + i * image, x.data<float>() + j * image, share,
              image);
      mix_row(mixed.data<float>() + i * classes, targets.data<float>() + i * classes,
              targets.data<float>() + j * classes, share, classes);
    }
    batch = {y, mixed};
  };
}

Transform cutmix(double alpha, int64_t classes) {
  check<ValueError>(alpha > 0 && classes >= 1, "cutmix: needs alpha > 0 and classes >= 1, got {} and {}",
                    alpha, classes);
  return [=](Batch& batch, const SampleRandom& random) {
    const Planes planes("cutmix", batch.inputs);
    const Tensor x = float_inputs("cutmix", batch);
    const Tensor targets = probabilities("cutmix", batch.targets, classes);
    const Tensor y = ops::copy(x);
    const Tensor mixed = empty_like(targets);
    for (int64_t i = 0; i < planes.images; ++i) {
      int64_t draw = 0;
      const int64_t j = random.below(planes.images, i, draw++);
      const double cut = std::sqrt(1 - beta(alpha, random, i, draw));
      const auto box = [&](int64_t size) {
        const int64_t centre = random.below(size, i, draw++);
        const auto half = static_cast<int64_t>(cut * static_cast<double>(size)) / 2;
        return std::pair(std::max<int64_t>(centre - half, 0), std::min(centre + half, size));
      };
      const auto [top, bottom] = box(planes.height);
      const auto [left, right] = box(planes.width);
      for (int64_t c = 0; c < planes.channels; ++c)
        for (int64_t h = top; h < bottom; ++h) {
          const int64_t row = (c * planes.height + h) * planes.width;
          std::copy_n(x.data<float>() + j * planes.image() + row + left, right - left,
                      y.data<float>() + i * planes.image() + row + left);
        }
      const float share =
          1 - static_cast<float>((bottom - top) * (right - left)) / static_cast<float>(planes.plane());
      mix_row(mixed.data<float>() + i * classes, targets.data<float>() + i * classes,
              targets.data<float>() + j * classes, share, classes);
    }
    batch = {y, mixed};
  };
}

}  // namespace pleat::data
