#include "pleat/ops/norm/batch_norm.h"

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/relu.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
BatchNormResult batch_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormOptions& options, const char* op) {
  const RecordOp range(op, x, weight, bias);
  const BatchNormProblem problem =
      batch_norm_problem(op, x, weight, bias, running_mean, running_var, options);
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::forward, options.implementation);
  range.details([&] { return RangeDetails{.implementation = implementation.name()}; });
  const Tensor dense = channel_dense(x);
  const TensorOptions statistics{.dtype = float64, .device = x.device()};
  const Shape shape{problem.view.channels};
  const bool empty_batch = x.numel() == 0;
  // An empty batch is taken for one without mean and variance.
  const bool zero = options.training && empty_batch;
  const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
  RunningStatistics running;
  if (options.training)
    running = {running_mean, running_var, options.num_batches_tracked, options.momentum, n / (n - 1)};
  const BatchNormForward t{.x = dense,
                           .weight = weight,
                           .bias = bias,
                           .residual = problem.residual ? laid_out_as(options.residual, dense) : Tensor(),
                           .mean = zero ? zeros(shape, statistics) : empty(shape, statistics),
                           .variance = zero ? zeros(shape, statistics) : empty(shape, statistics),
                           .rstd = empty(shape, statistics),
                           .running = running,
                           .y = empty_like(dense)};
  if (zero) reciprocal_deviation(t.variance, options.eps, t.rstd);
  if (!options.training) read_running(running_mean, running_var, options.eps, t.mean, t.variance, t.rstd);
  if (!empty_batch) implementation.forward(problem, t);
  return {t.y, t.mean, t.rstd};
}

BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                   const BatchNormOptions& options, bool need_input, const char* op,
                                   const Tensor& y, const Tensor& more_dy) {
  const RecordOp range(op, "_backward", dy, x, weight);
  BatchNormProblem problem =
      batch_norm_backward_problem(op, dy, x, weight, bias, mean, rstd, y, more_dy, options);
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::backward,
                        first_named(options.backward_implementation, options.implementation));
  range.details([&] { return RangeDetails{.implementation = implementation.name()}; });
  const Tensor dense = channel_dense(x);
  const DType parameters = weight.defined() ? weight.dtype() : compute_dtype(x.dtype());
  const TensorOptions gradients{.dtype = parameters, .device = x.device()};
  const Shape shape{problem.view.channels};
  const bool empty_batch = x.numel() == 0;
  const bool opens = y.defined() && (implementation.opens_by_result() || empty_batch);
  const Tensor sum = more_dy.defined() && !opens ? add(dy, more_dy) : dy;
  Tensor open;
  if (opens) {
    open = empty_like(dense);
  } else if (y.defined()) {
    open = laid_out_as(relu_backward(sum, y), dense);
    problem.relu = false;
  }
  const BatchNormBackward t{.dy = y.defined() && !opens ? open : laid_out_as(sum, dense),
                            .x = dense,
                            .weight = weight,
                            .bias = bias,
                            .mean = to_format(mean, MemoryFormat::contiguous),
                            .rstd = to_format(rstd, MemoryFormat::contiguous),
                            .more_dy = opens && more_dy.defined() ? laid_out_as(more_dy, dense) : Tensor(),
                            .y = opens ? laid_out_as(y, dense) : Tensor(),
                            .dresidual = open,
                            .dx = need_input ? empty_like(dense) : Tensor(),
                            .dweight = empty_batch ? zeros(shape, gradients) : empty(shape, gradients),
                            .dbias = empty_batch ? zeros(shape, gradients) : empty(shape, gradients)};
  if (!empty_batch) implementation.backward(problem, t);
  return {t.dx, t.dweight, t.dbias, t.dresidual};
}

}  // namespace pleat::ops
