#include "pleat/data/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pleat/core/tensor/create.h"

namespace pleat::data {
namespace {

// Weights are whole numbers of 2^-22: the sum of 255 times weights that add up to one stays below 2^31.
constexpr int precision = 22;

/// The old pixels, with weights, of each new pixel of a line.
struct Filter {
  int64_t taps = 0;              ///< maximum of `count`
  std::vector<int64_t> first;    ///< old pixel
  std::vector<int64_t> count;    ///< of old pixels
  std::vector<int32_t> weights;  ///< taps for each new pixel
};

Filter triangle(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  Filter filter;
  filter.taps = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  filter.weights.resize(static_cast<std::size_t>(filter.taps * to));
  std::vector<double> exact(static_cast<std::size_t>(filter.taps));
  for (int64_t x = 0; x < to; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * scale;
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const auto end = std::min<int64_t>(static_cast<int64_t>(centre + support + 0.5), from);
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      const double distance = std::abs((static_cast<double>(i) - centre + 0.5) / support);
      const double weight = std::max(1 - distance, 0.0);
      exact[static_cast<std::size_t>(i - first)] = weight;
      sum += weight;
    }
    for (int64_t i = 0; i < end - first; ++i) {
      const double weight = exact[static_cast<std::size_t>(i)] / sum;
      filter.weights[static_cast<std::size_t>(x * filter.taps + i)] =
          static_cast<int32_t>(0.5 + weight * (1 << precision));
    }
    filter.first.push_back(first);
    filter.count.push_back(end - first);
  }
  return filter;
}

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255)); }
constexpr int32_t half = 1 << (precision - 1);

// Each of `lines` lines of `from` pixels becomes one of `to`.
void along_rows(const uint8_t* in, int64_t lines, int64_t from, uint8_t* out, int64_t to) {
  const Filter filter = triangle(from, to);
  for (int64_t line = 0; line < lines; ++line, in += from, out += to) {
    for (int64_t x = 0; x < to; ++x) {
      const auto place = static_cast<std::size_t>(x);
      const uint8_t* pixels = in + filter.first[place];
      const int32_t* weights = filter.weights.data() + x * filter.taps;
      int32_t sum = half;
      for (int64_t i = 0; i < filter.count[place]; ++i) sum += pixels[i] * weights[i];
      out[x] = rounded(sum);
    }
  }
}

// `from` rows of `width` pixels become `to` rows.
void along_columns(const uint8_t* in, int64_t from, int64_t width, uint8_t* out, int64_t to) {
  const Filter filter = triangle(from, to);
  std::vector<int32_t> sums(static_cast<std::size_t>(width));
  for (int64_t y = 0; y < to; ++y, out += width) {
    const auto place = static_cast<std::size_t>(y);
    std::fill(sums.begin(), sums.end(), half);
    for (int64_t i = 0; i < filter.count[place]; ++i) {
      const uint8_t* row = in + (filter.first[place] + i) * width;
      const int32_t weight = filter.weights[static_cast<std::size_t>(y * filter.taps + i)];
      for (int64_t x = 0; x < width; ++x) sums[static_cast<std::size_t>(x)] += row[x] * weight;
    }
    for (int64_t x = 0; x < width; ++x) out[x] = rounded(sums[static_cast<std::size_t>(x)]);
  }
}

}  // namespace

Tensor resize_bilinear(const Tensor& image, int64_t height, int64_t width) {
  const int64_t channels = image.size(0), old_height = image.size(1), old_width = image.size(2);
  Tensor wide = image;
  if (width != old_width) {
    wide = empty({channels, old_height, width}, {.dtype = uint8, .device = Device()});
    along_rows(image.data<uint8_t>(), channels * old_height, old_width, wide.data<uint8_t>(), width);
  }
  if (height == old_height) return wide;
  const Tensor result = empty({channels, height, width}, {.dtype = uint8, .device = Device()});
  for (int64_t c = 0; c < channels; ++c)
    along_columns(wide.data<uint8_t>() + c * old_height * width, old_height, width,
                  result.data<uint8_t>() + c * height * width, height);
  return result;
}

Tensor crop_picture(const Tensor& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  const int64_t channels = image.size(0), old_height = image.size(1), old_width = image.size(2);
  const Tensor result = empty({channels, height, width}, {.dtype = uint8, .device = Device()});
  auto* out = result.data<uint8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* in = image.data<uint8_t>() + (c * old_height + top) * old_width + left;
    for (int64_t y = 0; y < height; ++y, in += old_width, out += width) std::copy_n(in, width, out);
  }
  return result;
}

}  // namespace pleat::data
