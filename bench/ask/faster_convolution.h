#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pleat/bench/ask/answer.h"
#include "pleat/core/base/precision.h"
#include "pleat/core/tensor/tensor.h"

/// "Is a convolution with TF32 faster, and is one made of unfold and a matrix product?"

namespace pleat::bench::ask::faster_convolution {

/// How the windows are laid out: by copying (im2col), or by a convolution with filters of a single one each.
enum class Unfolding : unsigned char { im2col, one_hot };

/// Filters [C * taps, 1, kernel...] of a convolution with C groups whose results are the windows of its
/// input, in the order of `unfold`: filter r has its one at tap r.
Tensor one_hot_filters(int64_t channels, const Shape& kernel, const Tensor& like);

/// What `conv1d`, `conv2d` or `conv3d` of x [N, C, spatial...] with w [K, C, kernel...] and bias [K] compute
/// with stride 1, out of public functions: pad, unfold, einsum, fold, and an addition. `padding` zeros on
/// each side. The precisions are those of the convolution in Unfolding::one_hot and of einsum.
Tensor conv_fast(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t padding, Unfolding unfolding,
                 Precision convolution = Precision::highest, Precision product = Precision::highest);

/// One line of the table: a way to compute the same result.
struct Row {
  int dims = 2;
  DType dtype = float32;
  std::optional<Unfolding> unfolding = {};  ///< of conv_fast; none: the convolution itself
  bool tf32_convolution = false;
  bool tf32_product = false;
  Time time = {};
  double error = 0;  ///< relative, against float64
};

/// What the rows say. Rows with TF32 are there only where there is a difference (CUDA).
std::vector<std::string> conclude(const std::vector<Row>& rows);

Answer ask(const AskOptions& options);

}  // namespace pleat::bench::ask::faster_convolution
