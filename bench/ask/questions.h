#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/bench/ask/compare.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/tensor.h"

/// The questions that people asked, a file each: what it times, and a program that does.

namespace pleat::bench::ask {

/// "Why does batch norm slow down when Conv2d is executed in unfolded fashion?"
void batchnorm_after_unfold(Compare& compare);

/// The convolution as a product, in the two ways that users write it; stride 1.
/// x [N, C, H, W], w [K, C, R, S] -> [N, K, H', W']. Filters times columns: the result is contiguous. With
/// `windows_first`, windows times filters, [N, L, C R S] x [C R S, K]: the result, a transposed view, is
/// channels-last.
Tensor conv_by_product(const Tensor& x, const Tensor& w, int64_t padding, bool windows_first);

/// "Speed up F.unfold and F.fold": what a convolution costs that is written as unfold, product and fold.
void unfold_speed(Compare& compare);

/// A convolution of x [N, C, H, W] with stride 1 as users write it: windows, a product with the filters
/// [K, C * size * size], and fold, which here only makes images of columns. Same result as
/// `conv2d(x, reshape(filters, {K, C, size, size}), {.padding = padding})`.
Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding);
/// The same, a few images at a time, whose columns are still in a cache when the product reads them; and
/// without fold, since a change of shape is enough.
Tensor conv_in_parts(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding, int64_t images);

/// "Why is the backward of Conv2d faster than that of Conv3d?", asked of one computation written in two ways:
/// frames [N D, C, H, W] with 3x3 filters, or videos [N, C, D, H, W] with (1, 3, 3) filters.
void conv2d_vs_conv3d(Compare& compare);

/// Videos [N, C, D, H, W] as frames [N * D, C, H, W]: a copy unless they are channels-last.
Tensor frames_of(const Tensor& videos);
/// Of videos and w [K, C, 1, 3, 3]: conv2d of their frames, conv3d, and a conv3d that is not solved as a
/// conv2d (ops/conv/problem.h), because its first and last frames are padding. On tensors of their own.
std::vector<Way> frames_and_videos(const Tensor& videos, const Tensor& w, const std::string& implementation);

/// "Convolution in groups, but not grouped convolution": one filter bank [K, C, 3, 3] over each of B x N
/// small patches, x [B, N, C, H, W]. Ways to write it, all with padding 1, all with the result [B, N, K, H,
/// W] up to the order in which it lies in memory.
void patches(Compare& compare);

/// Patches as a batch of B * N images. `implementation` as in ConvOptions; empty: the default.
Tensor as_batch(const Tensor& x, const Tensor& filters, const std::string& implementation = {});
/// Patches as the frames of B videos [B, C, N, H, W], with (1, 3, 3) filters.
Tensor as_frames(const Tensor& x, const Tensor& filters);
/// Windows of all patches as columns, times the filters.
Tensor by_unfold(const Tensor& x, const Tensor& filters);
/// A call for each n.
Tensor by_loop(const Tensor& x, const Tensor& filters);
/// Patches as channels of an image [B, N * C, H, W], a group of channels each, with the filters N times.
Tensor as_groups(const Tensor& x, const Tensor& filters);

/// "Is a convolution with TF32 faster, and is one made of unfold and a matrix product?"
void faster_convolution(Compare& compare);

/// How windows are laid out for conv_fast: by copying (im2col), or by a convolution with filters of a single
/// one each. None: the convolution itself.
enum class Windows : unsigned char { none, im2col, one_hot };

/// Filters [C * taps, 1, kernel...] of a convolution with C groups whose results are the windows of its
/// input, in the order of `unfold`: filter r has its one at tap r.
Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like);

/// What `conv1d`, `conv2d` or `conv3d` of x [N, C, spatial...] with w [K, C, kernel...] and bias [K] compute
/// with stride 1, out of public functions: pad, unfold, einsum, fold. `padding` zeros on each side. The
/// precisions are those of convolutions and of einsum.
struct FastConvolution {
  int64_t padding;
  Windows layout;
  Precision convolution = Precision::highest, product = Precision::highest;

  Tensor windows(const Tensor& x, const Tensor& w) const;         ///< -> [N, C * taps, L]
  Tensor multiply(const Tensor& w, const Tensor& windows) const;  ///< -> columns [N, K, L]
  Tensor images(const Tensor& columns, const Tensor& x, const Tensor& w) const;
  Tensor operator()(const Tensor& x, const Tensor& w, const Tensor& bias) const;
};

}  // namespace pleat::bench::ask
