// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/base/host_device.h"
#include "pleat/ops/image/image.h"

namespace pleat::ops {

/// Where row or column i of a moved image comes from; -1 outside.
PLEAT_HOST_DEVICE inline int64_t moved_from(int64_t i, int64_t size, bool reflect) {
  if (i >= 0 && i < size) return i;
  if (!reflect) return -1;
  return i < 0 ? -i : 2 * (size - 1) - i;
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
