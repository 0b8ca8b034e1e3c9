#pragma once

#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

struct RmsNormResult {
  Tensor y;
  Tensor
      rrms;  ///< [rows, 1]: 1 / sqrt(mean of x^2 + eps); float64 or, where x is not and on the CPU, float32
};

/// y = x / sqrt(mean of x^2 + eps) * weight, the mean over each row of x [rows, n] (Zhang and Sennrich, "Root
/// mean square layer normalization", 2019). weight [n] may be undefined (1); y has x's type. The squares are
/// summed as those of norm. Checks types only: ops/norm/norm.h has the rest.
RmsNormResult rms_norm_forward(const Tensor& x, const Tensor& weight, double eps);

struct RmsNormGrads {
  Tensor x;       ///< like x
  Tensor weight;  ///< [n]
};

/// Gradients of rms_norm_forward's y, whose rrms it gave; those that are not needed are undefined.
RmsNormGrads rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rrms,
                               bool need_input = true, bool need_weight = true);

}  // namespace pleat::ops
