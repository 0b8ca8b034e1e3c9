#include "pleat/ops/norm/batch_norm.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/record_function.h"
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
  const BatchNormForward t{.x = dense,
                           .weight = weight,
                           .bias = bias,
                           .mean = zero ? zeros(shape, statistics) : empty(shape, statistics),
                           .variance = zero ? zeros(shape, statistics) : empty(shape, statistics),
                           .rstd = empty(shape, statistics),
                           .y = empty_like(dense)};
  if (zero) reciprocal_deviation(t.variance, options.eps, t.rstd);
  if (!options.training) read_running(running_mean, running_var, options.eps, t.mean, t.variance, t.rstd);
  if (!empty_batch) implementation.forward(problem, t);
  if (options.training && running_mean.defined() && !empty_batch) {
    const double momentum =
        options.momentum ? *options.momentum : 1 / (static_cast<double>(options.batches_tracked) + 1);
    const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
    update_running(running_mean, running_var, t.mean, t.variance, momentum, n / (n - 1));
  }
  return {t.y, t.mean, t.rstd};
}

BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                   const BatchNormOptions& options, bool need_input, const char* op) {
  const RecordOp range(op, "_backward", dy, x, weight);
  const BatchNormProblem problem = batch_norm_backward_problem(op, dy, x, weight, bias, mean, rstd, options);
  const std::string& own = options.backward_implementation;
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::backward, own.empty() ? options.implementation : own);
  range.details([&] { return RangeDetails{.implementation = implementation.name()}; });
  const Tensor dense = channel_dense(x);
  const DType parameters = weight.defined() ? weight.dtype() : compute_dtype(x.dtype());
  const TensorOptions gradients{.dtype = parameters, .device = x.device()};
  const Shape shape{problem.view.channels};
  const bool empty_batch = x.numel() == 0;
  const BatchNormBackward t{.dy = laid_out_as(dy, dense),
                            .x = dense,
                            .weight = weight,
                            .bias = bias,
                            .mean = to_format(mean, MemoryFormat::contiguous),
                            .rstd = to_format(rstd, MemoryFormat::contiguous),
                            .dx = need_input ? empty_like(dense) : Tensor(),
                            .dweight = empty_batch ? zeros(shape, gradients) : empty(shape, gradients),
                            .dbias = empty_batch ? zeros(shape, gradients) : empty(shape, gradients)};
  if (!empty_batch) implementation.backward(problem, t);
  return {t.dx, t.dweight, t.dbias};
}

}  // namespace pleat::ops
