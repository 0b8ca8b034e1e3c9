// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/tensor/tensor.h"
#include "pleat/ops/loss/class_view.h"

/// Losses of class indices on a GPU: logits as a ClassProblem has them, losses and gradients in their type,
/// logsumexp and weights in that computed in.

namespace pleat::ops {

/// The first target whose class lies outside and is not the one to ignore, or the number of targets.
/// Waits for the device.
int64_t first_outside_cuda(const char* op, const Tensor& indices, const ClassView& view);

/// The losses of log-softmax and the logsumexp of the logits: `losses` and `logsumexp` are [targets]. With a
/// `weight_sum` [] float64, `losses` is [] and the mean: their sum divided by the targets' weights, whose sum
/// that becomes. There is at least one target then.
void cross_entropy_cuda(const Tensor& losses, const Tensor& logsumexp, const Tensor& logits,
                        const ClassView& view, const Tensor& weight_sum = {});

/// dx = factor[i] (P p - share), of the logits' memory order; with undefined logits P p counts as 0, with
/// undefined factors these as `common_factor`. With a `weight_sum` the only factor is divided by that.
struct ClassGradient {
  Tensor factors{};
  Tensor weight_sum{};
  double common_factor = 1;
  Tensor logits{};
  Tensor logsumexp{};
};
void class_gradient_cuda(const char* op, const Tensor& dx, const ClassGradient& gradient,
                         const ClassView& view);

/// losses = -weight[t] x[t].
void nll_cuda(const Tensor& losses, const Tensor& x, const ClassView& view);

void target_weights_cuda(const Tensor& weights, const ClassView& view);

}  // namespace pleat::ops
