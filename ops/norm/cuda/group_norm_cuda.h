// Private header: not installed.
#pragma once

#include "pleat/ops/spatial/channel_layout.h"

namespace pleat::ops {

/// Group normalisation on the GPU. x, dy, y and dx lie as `view` says and are of one
/// floating type; weight and bias [C] may be undefined; mean, variance and rstd are [N, groups] float64,
/// dense.
struct GroupNormCall {
  const char* op;
  ChannelView view;
  int64_t groups;  ///< of an image
  Tensor x, weight, bias;
  Tensor mean, rstd;
};

/// Writes mean, variance, rstd and y.
void group_norm_cuda(const GroupNormCall& call, double eps, const Tensor& variance, const Tensor& y);

/// Writes dx, unless it is undefined, and dweight and dbias [C], dense.
void group_norm_backward_cuda(const GroupNormCall& call, const Tensor& dy, const Tensor& dx,
                              const Tensor& dweight, const Tensor& dbias);

}  // namespace pleat::ops
