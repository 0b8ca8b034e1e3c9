// Private header: not installed.
#pragma once

#include "pleat/ops/spatial/channel_layout.h"

namespace pleat::ops {

/// Group normalisation over the grid of the device. x, dy, y and dx lie as `view` says and are of one
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
void grid_group_norm(const GroupNormCall& call, double eps, const Tensor& variance, const Tensor& y);

/// Writes dx, unless it is undefined, and dweight and dbias [C], dense.
void grid_group_norm_backward(const GroupNormCall& call, const Tensor& dy, const Tensor& dx,
                              const Tensor& dweight, const Tensor& dbias);

}  // namespace pleat::ops
