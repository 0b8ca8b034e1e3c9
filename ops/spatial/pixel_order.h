// Private header: not installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/tensor/tensor.h"

/// Images of up to three spatial dimensions, element by element, for functors that are called with an index.

namespace pleat::ops {

/// Steps of [N, C, D, H, W] in elements; spatial dimensions that a tensor does not have are the first ones.
using ImageSteps = std::array<int64_t, 5>;
inline ImageSteps image_steps(const Tensor& t) {
  const std::size_t dims = t.strides().size() - 2;
  ImageSteps steps{t.strides()[0], t.strides()[1]};
  for (std::size_t d = 0; d < dims; ++d) steps[5 - dims + d] = t.strides()[2 + d];
  return steps;
}

/// An element's place in [N, C, D, H, W].
struct Pixel {
  int64_t image, channel;
  std::array<int64_t, 3> at;

  PLEAT_HOST_DEVICE int64_t offset(const ImageSteps& steps) const {
    return image * steps[0] + channel * steps[1] + at[0] * steps[2] + at[1] * steps[3] + at[2] * steps[4];
  }
};

/// The elements of [N, C, D, H, W] in the order in which they lie in a tensor without gaps, row-major or
/// channels_last: neighbouring threads write neighbouring elements.
class PixelOrder {
 public:
  /// Of a tensor [N, C, spatial...] that is dense in `format`.
  PixelOrder(const Tensor& t, MemoryFormat format)
      : channels_last_(format == MemoryFormat::channels_last), channels_(t.shape()[1]) {
    const std::size_t dims = t.shape().size() - 2;
    for (std::size_t d = 0; d < dims; ++d) size_[3 - dims + d] = FastDivider(t.shape()[2 + d]);
  }

  PLEAT_HOST_DEVICE Pixel at(int64_t i) const {
    Pixel pixel{};
    if (channels_last_) {
      pixel.channel = i;
      i = channels_.divide(pixel.channel);
    }
    for (std::size_t d = 3; d-- > 0;) {
      pixel.at[d] = i;
      i = size_[d].divide(pixel.at[d]);
    }
    if (!channels_last_) {
      pixel.channel = i;
      i = channels_.divide(pixel.channel);
    }
    pixel.image = i;
    return pixel;
  }

 private:
  bool channels_last_;
  FastDivider channels_;
  std::array<FastDivider, 3> size_{FastDivider(1), FastDivider(1), FastDivider(1)};
};

}  // namespace pleat::ops
