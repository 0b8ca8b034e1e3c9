#pragma once

#include "pleat/core/tensor/tensor.h"

/// Elements in another order, or several times: copies; differentiable. Dimensions may be negative, counting
/// from the end.

namespace pleat {

/// The order reversed along these dimensions. Throws IndexError, ValueError for a dimension named twice.
Tensor flip(const Tensor& x, const Dims& dims);
/// Turned by `k` times 90 degrees in the plane of two dimensions, from the first to the second. Throws
/// ValueError unless these are two.
Tensor rot90(const Tensor& x, Integer k = 1, const Dims& dims = {0, 1});
/// Every element moved on by shifts[i] along dims[i], those pushed over the end coming in at the start.
/// Without dimensions there is one shift, along all elements in row-major order. Throws ShapeError when the
/// numbers of shifts and dimensions differ.
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims = {});
/// The whole tensor repeats[d] times along each dimension d; further leading entries add dimensions.
/// Throws ShapeError when there are fewer entries than dimensions or one is negative.
Tensor repeat(const Tensor& x, const Sizes& repeats);
/// The same; entries that are missing at the front count as 1.
Tensor tile(const Tensor& x, Sizes repeats);
/// Each element `times` times in a row along `dim`. Throws ValueError when `times` is negative.
Tensor repeat_interleave(const Tensor& x, Integer times, Integer dim);

/// Channels become pixels, r = upscale_factor: y[..., c, h r + i, w r + j] = x[..., (c r + i) r + j, h, w],
/// from
/// [..., C r r, H, W] to [..., C, H r, W r]. Images [N, C, H, W] keep their memory format. Shi et al.,
/// "Real-time single image and video super-resolution ..." (2016). Throws ShapeError below three dimensions
/// or unless r r divides the channels, ValueError unless r >= 1.
Tensor pixel_shuffle(const Tensor& x, Integer upscale_factor);
/// The reverse, from [..., C, H r, W r]. Throws ShapeError unless r = downscale_factor divides height and
/// width.
Tensor pixel_unshuffle(const Tensor& x, Integer downscale_factor);
/// The channels of x [N, C, ...] of all groups in turn: y[n, k groups + g] = x[n, g C / groups + k]. Zhang et
/// al., "ShuffleNet" (2018). Throws ShapeError below two dimensions or unless `groups` divides C, ValueError
/// unless groups >= 1.
Tensor channel_shuffle(const Tensor& x, Integer groups);

}  // namespace pleat
