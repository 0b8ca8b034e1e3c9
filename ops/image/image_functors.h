// Private header: not installed.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/image/image.h"

namespace pleat::ops {

/// Where row or column i of a moved image comes from; -1 outside.
PLEAT_HOST_DEVICE inline int64_t moved_from(int64_t i, int64_t size, bool reflect) {
  if (i >= 0 && i < size) return i;
  if (!reflect) return -1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

/// What pixel (h, w) of a result shows of a plane.
template <class T>
PLEAT_HOST_DEVICE inline T mapped_pixel(const T* plane, int64_t height, int64_t width, const ImageMap& map,
                                        int64_t h, int64_t w, bool repeat_edge, bool nearest) {
  // Two pixels beyond the image are as far as any place can matter.
  const auto limited = [repeat_edge, nearest](float place, int64_t size) {
    if (nearest) place = std::floor(place + 0.5F);
    const float low = repeat_edge ? 0.0F : -2.0F;
    const float high = static_cast<float>(size) + (repeat_edge ? -1.0F : 1.0F);
    return place < low ? low : place > high ? high : place;
  };
  const auto row_number = static_cast<float>(h);
  const auto column_number = static_cast<float>(w);
  const float row = limited(map.row[0] * row_number + map.row[1] * column_number + map.row[2], height);
  const float column =
      limited(map.column[0] * row_number + map.column[1] * column_number + map.column[2], width);
  const float top = std::floor(row);
  const float left = std::floor(column);
  const auto pixel = [&](int64_t i, int64_t j) {
    const bool inside = i >= 0 && i < height && j >= 0 && j < width;
    return inside ? static_cast<float>(plane[i * width + j]) : 0.0F;
  };
  const auto i = static_cast<int64_t>(top);
  const auto j = static_cast<int64_t>(left);
  // A pixel that weighs 0 plays no part, be it NaN.
  const auto between = [](float first, float second, float share) {
    return share == 0 ? first : first + (second - first) * share;
  };
  const float value = between(between(pixel(i, j), pixel(i, j + 1), column - left),
                              between(pixel(i + 1, j), pixel(i + 1, j + 1), column - left), row - top);
  if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(value + 0.5F);
  else
    return value;
}

PLEAT_HOST_DEVICE inline bool is_inside(const ImageBox& box, int64_t h, int64_t w) {
  return h >= box.top && h < box.bottom && w >= box.left && w < box.right;
}

PLEAT_HOST_DEVICE inline float grey_of(float red, float green, float blue) {
  return 0.299F * red + 0.587F * green + 0.114F * blue;
}

/// One channel of a pixel whose own grey is `grey`, in an image of that mean grey.
PLEAT_HOST_DEVICE inline float adjusted(float value, float grey, float mean_grey, const ImageColors& by) {
  const float centre = mean_grey * by.brightness;
  const float saturated = (grey + (value - grey) * by.saturation) * by.brightness;
  const float result = centre + (saturated - centre) * by.contrast;
  return result < 0 ? 0 : result > 1 ? 1 : result;
}

}  // namespace pleat::ops
