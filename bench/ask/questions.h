#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/tensor.h"

/// The questions that people asked, a file each: a function that measures, then what it times, and where
/// Times::compare alone does not make the sentences, what makes them from times.

namespace pleat::bench::ask {

/// "Why does batch norm slow down when Conv2d is executed in unfolded fashion?"
Answer batchnorm_after_unfold(const AskOptions& options);

/// The convolution as a product, in the two ways that users write it; stride 1.
/// x [N, C, H, W], w [K, C, R, S] -> [N, K, H', W']. Filters times columns: the result is contiguous. With
/// `windows_first`, windows times filters, [N, L, C R S] x [C R S, K]: the result, a transposed view, is
/// channels-last.
Tensor conv_by_product(const Tensor& x, const Tensor& w, int64_t padding, bool windows_first);

/// "Speed up F.unfold and F.fold": what a convolution costs that is written as unfold, product and fold.
Answer unfold_speed(const AskOptions& options);

/// A convolution of x [N, C, H, W] with stride 1 as users write it: windows, a product with the filters
/// [K, C * size * size], and fold, which here only makes images of columns. Same result as
/// `conv2d(x, reshape(filters, {K, C, size, size}), {.padding = padding})`.
Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding);

/// The same, a few images at a time, whose columns are still in a cache when the product reads them; and
/// without fold, since a change of shape is enough.
Tensor conv_in_parts(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding, int64_t images);

/// Runs conv_by_hand and its backward from the gradient `dy`. Seconds of unfold, product and fold, and of the
/// backward of fold, product and unfold, between readings of the clock, which on a GPU wait for the device:
/// after each piece forward, in hooks on the gradients of their results backward. x and filters have to
/// require gradients.
std::vector<double> time_pieces(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding,
                                const Tensor& dy);

/// Of passes `forward` and "training", and of the pieces.
Strings conclude_unfold_speed(const Times& times);

/// "Why is the backward of Conv2d faster than that of Conv3d?", asked of one computation written in two ways:
/// frames [N D, C, H, W] with 3x3 filters, or videos [N, C, D, H, W] with (1, 3, 3) filters.
Answer conv2d_vs_conv3d(const AskOptions& options);

/// Videos [N, C, D, H, W] as frames [N * D, C, H, W]: a copy unless they are channels-last.
Tensor frames_of(const Tensor& videos);

/// Of videos and w [K, C, 1, 3, 3]: conv2d of their frames, conv3d, and a conv3d that is not solved as a
/// conv2d (ops/conv/problem.h), because its first and last frames are padding. On tensors of their own.
std::vector<Way> frames_and_videos(const Tensor& videos, const Tensor& w, const std::string& implementation);

/// "Convolution in groups, but not grouped convolution": one filter bank [K, C, 3, 3] over each of B x N
/// small patches, x [B, N, C, H, W]. Ways to write it, all with padding 1, all with the result [B, N, K, H,
/// W] up to the order in which it lies in memory.
Answer patches(const AskOptions& options);

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
Answer faster_convolution(const AskOptions& options);

/// How windows are laid out for conv_fast: by copying (im2col), or by a convolution with filters of a single
/// one each. None: the convolution itself.
enum class Windows : unsigned char { none, im2col, one_hot };

/// Filters [C * taps, 1, kernel...] of a convolution with C groups whose results are the windows of its
/// input, in the order of `unfold`: filter r has its one at tap r.
Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like);

/// The pieces of conv_fast.
struct FastPieces {
  int64_t padding;
  Windows layout;  ///< not `none`
  Precision convolution = Precision::highest, product = Precision::highest;

  /// Pad and unfold: [N, C, spatial...] -> windows [N, C * taps, L], for filters like w.
  Tensor unfold(const Tensor& x, const Tensor& w) const;
  Tensor multiply(const Tensor& w, const Tensor& windows) const;  ///< -> columns [N, K, L]
  Tensor fold(const Tensor& columns, const Tensor& x, const Tensor& w) const;
  Tensor add(const Tensor& y, const Tensor& bias) const;
};

/// What `conv1d`, `conv2d` or `conv3d` of x [N, C, spatial...] with w [K, C, kernel...] and bias [K] compute
/// with stride 1, out of public functions: the pieces above, one after the other. `padding` zeros on each
/// side. The precisions are those of convolutions and of einsum.
Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Windows layout,
                 Precision convolution = Precision::highest, Precision product = Precision::highest);

/// Whether an error against float64 is that of some roundings: of operands, of windows and of the result.
bool is_explained(double error, DType dtype, const std::string& way);

/// The pass is `forward`. Records whose error is more than type and precision explain have the detail
/// "error".
Strings conclude_faster_convolution(const Times& times);

}  // namespace pleat::bench::ask
