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

/// An element's place in [N, C, D, H, W], counted by numbers of 64 bits or, where all are below 2^31, of
/// uint32_t.
template <class Index>
struct PixelOf {
  Index image, channel;
  std::array<Index, 3> at;

  PLEAT_HOST_DEVICE Index offset(const std::array<Index, 5>& steps) const {
    return image * steps[0] + channel * steps[1] + at[0] * steps[2] + at[1] * steps[3] + at[2] * steps[4];
  }
};
using Pixel = PixelOf<int64_t>;

/// The elements of [N, C, D, H, W] in the order in which they lie in a tensor without gaps, row-major or
/// channels_last: neighbouring threads write neighbouring elements.
template <class Index>
class PixelOrderOf {
 public:
  /// Of a tensor [N, C, spatial...] that is dense in `format`.
  PixelOrderOf(const Tensor& t, MemoryFormat format) : PixelOrderOf(t, format, t.shape()[1]) {}
  /// The same with another number of channels.
  PixelOrderOf(const Tensor& t, MemoryFormat format, int64_t channels)
      : channels_last_(format == MemoryFormat::channels_last), channels_(channels) {
    const std::size_t dims = t.shape().size() - 2;
    for (std::size_t d = 0; d < dims; ++d) size_[3 - dims + d] = Divider<Index>(t.shape()[2 + d]);
  }

  PLEAT_HOST_DEVICE PixelOf<Index> at(Index i) const {
    PixelOf<Index> pixel{};
    if (channels_last_) {
      pixel.channel = i;
      i = channels_.divide(pixel.channel);
    }
    for (std::size_t d = 3; d-- > 0;) {
      if (d == 0 && size_[0].divisor() == 1) continue;  // as of most images
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
  Divider<Index> channels_;
  std::array<Divider<Index>, 3> size_{Divider<Index>(1), Divider<Index>(1), Divider<Index>(1)};
};
using PixelOrder = PixelOrderOf<int64_t>;

}  // namespace pleat::ops
