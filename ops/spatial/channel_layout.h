#pragma once

#include "pleat/core/tensor/tensor.h"

/// Tensors [N, C, spatial...] of any number of spatial dimensions in one of two layouts without gaps:
/// row-major, or with the channels densest.

namespace pleat::ops {

/// Such a tensor with its spatial dimensions seen as one, of `pixels`.
struct ChannelView {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixels = 0;
  /// Element (n, c, p) lies at (n * pixels + p) * channels + c, else at (n * channels + c) * pixels + p.
  bool channels_last = false;

  int64_t numel() const { return images * channels * pixels; }
  bool operator==(const ChannelView&) const = default;
};

/// How `x` is seen once it is dense (`channel_dense`). A single pixel counts as channels_last.
ChannelView channel_view(const Tensor& x);
/// `x` itself when it lies in one of the two layouts, else a row-major copy.
Tensor channel_dense(const Tensor& x);
/// `x` in the layout of the dense tensor `like` of the same shape; itself when it lies so already.
Tensor laid_out_as(const Tensor& x, const Tensor& like);

}  // namespace pleat::ops
