#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/options.h"

/// The questions that people asked, a file each. `ask` measures; `conclude` makes the sentences from times
/// alone; what else is here computes what is timed.

namespace pleat::bench::ask {

/// "Why does batch norm slow down when Conv2d is executed in unfolded fashion?"
namespace batchnorm_after_unfold {

/// The convolution as a product, in two ways that users write; stride 1. x [N, C, H, W], w [K, C, R, S] ->
/// [N, K, H', W']. The first multiplies filters by columns, the result is contiguous. The second multiplies
/// windows by filters, [N, L, C R S] x [C R S, K], and the result, a transposed view, is channels-last.
Tensor conv_by_columns(const Tensor& x, const Tensor& w, int64_t padding);
Tensor conv_by_windows(const Tensor& x, const Tensor& w, int64_t padding);

/// A way to compute the convolution, and the format of its result, which batch norm receives.
struct Way {
  std::string name;               ///< "direct", "unfold, asked for contiguous"
  bool is_implementation = true;  ///< called by its name alone: neither by hand nor with another format
  MemoryFormat format = MemoryFormat::contiguous;
};

/// Passes: "convolution", and of batch norm "eval", "train" and "backward".
std::vector<std::string> conclude(const Times& times, const std::vector<Way>& ways);
Answer ask(const AskOptions& options);

}  // namespace batchnorm_after_unfold

/// "Speed up F.unfold and F.fold": what a convolution costs that is written as unfold, product and fold.
namespace unfold_speed {

/// A convolution of x [N, C, H, W] with stride 1 as users write it: windows, a product with the filters
/// [K, C * size * size], and fold, which here only makes images of columns. Same result as
/// `conv2d(x, reshape(filters, {K, C, size, size}), {.padding = padding})`.
Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding);

/// Runs conv_by_hand and its backward from the gradient `dy`. Seconds of the backward of "unfold", "product"
/// and "fold", between hooks on the gradients: on the result when fold's backward begins, on the product's
/// result when that ends, and so on. On a GPU each hook waits for the device. x and filters have to require
/// gradients.
std::map<std::string, double> backward_pieces(const Tensor& x, const Tensor& filters, int64_t size,
                                              int64_t padding, const Tensor& dy);

inline const std::string by_hand = "unfold, product, fold by hand";
inline const std::string pieces_of =
    "by hand, piece by piece, ";  ///< and a batch: a problem, the pieces its ways

/// Ways: by_hand and conv2d by its implementations; passes "inference", "forward, recorded", "backward".
/// Passes of pieces: "forward", "backward (between hooks)".
std::vector<std::string> conclude(const Times& times);
Answer ask(const AskOptions& options);

}  // namespace unfold_speed

/// "Why is the backward of Conv2d faster than that of Conv3d?", asked of one computation written in two ways:
/// frames [N D, C, H, W] with 3x3 filters, or videos [N, C, D, H, W] with (1, 3, 3) filters.
namespace conv2d_vs_conv3d {

/// Videos [N, C, D, H, W] as frames [N * D, C, H, W]: a copy unless they are channels-last.
Tensor frames_of(const Tensor& videos);

/// One pass of a three-dimensional convolution exactly as it is stated, in three dimensions, by a named
/// implementation. A call of conv3d solves the simplest problem with the same elements instead
/// (ops/conv/problem.h). Operands are as ops::conv_forward and its kin take them: `a` is x, or dy in
/// backward passes; `b` is w in forward and backward_input, x in backward_weight; `shape` is that of the
/// result. Throws ValueError when the implementation cannot do it.
Tensor unreduced_pass(ops::ConvPass pass, const std::string& implementation, const Tensor& a, const Tensor& b,
                      const Shape& shape, const ConvOptions& options);

inline const std::string not_reduced = "conv3d, not reduced";
/// The problem of times as careless measurements give them: the way is how, the passes "conv2d" and "conv3d".
inline const std::string careless = "careless";
inline const std::string not_waiting = "host clock, not waiting for the device";

/// Problems are implementations; ways "conv2d", "conv3d" and not_reduced; passes "forward" and "backward".
/// `difference`: between the results of conv2d and conv3d, relatively; 0: they are equal bit for bit.
std::vector<std::string> conclude(const Times& times, double difference, Device device);
Answer ask(const AskOptions& options);

}  // namespace conv2d_vs_conv3d

/// "Convolution in groups, but not grouped convolution": one filter bank [K, C, 3, 3] over each of B x N
/// small patches, x [B, N, C, H, W]. Three ways to write it, all with padding 1, all with the result [B, N,
/// K, H, W] up to the order in which it lies in memory.
namespace patches {

/// Patches as a batch of B * N images. `implementation` as in ConvOptions; empty: the default.
Tensor as_batch(const Tensor& x, const Tensor& filters, const std::string& implementation = {});
/// Patches as the frames of B videos [B, C, N, H, W], with (1, 3, 3) filters.
Tensor as_frames(const Tensor& x, const Tensor& filters);
/// Windows of all patches as columns, times the filters.
Tensor by_unfold(const Tensor& x, const Tensor& filters);

/// A problem: a number of patches, or one dense image. Its result has so many elements.
struct Size {
  std::string problem;
  int64_t patches = 0;
  int64_t outputs = 0;
};
inline const std::string dense = "one dense image";  ///< that problem and its way

/// Sizes: numbers of patches, rising, then perhaps the dense image. Passes "forward" and "backward".
std::vector<std::string> conclude(const Times& times, const std::vector<Size>& sizes);
Answer ask(const AskOptions& options);

}  // namespace patches

/// "Is a convolution with TF32 faster, and is one made of unfold and a matrix product?"
namespace faster_convolution {

/// How a convolution is computed: by itself; or by conv_fast, whose windows are laid out by copying (im2col),
/// or by a convolution with filters of a single one each.
enum class Way : unsigned char { plain, im2col, one_hot };

/// Filters [C * taps, 1, kernel...] of a convolution with C groups whose results are the windows of its
/// input, in the order of `unfold`: filter r has its one at tap r.
Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like);

/// What `conv1d`, `conv2d` or `conv3d` of x [N, C, spatial...] with w [K, C, kernel...] and bias [K] compute
/// with stride 1, out of public functions: pad, unfold, einsum, fold, and an addition. `padding` zeros on
/// each side. The precisions are those of the convolution in Way::one_hot and of einsum.
Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Way way,
                 Precision convolution = Precision::highest, Precision product = Precision::highest);

/// Problems are "2-D float32"; ways "conv2d", "conv2d_fast, im2col" and "conv2d_fast, one-hot filters", in
/// this order; passes "TF32: convolution off, product on". Cells with TF32 are there only where there is a
/// difference (CUDA).
std::vector<std::string> conclude(const Times& times);
Answer ask(const AskOptions& options);

}  // namespace faster_convolution

}  // namespace pleat::bench::ask
