#include "pleat/ops/norm/batch_norm.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
BatchNormResult batch_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormOptions& options, const char* op) {
  const BatchNormProblem problem =
      batch_norm_problem(op, x, weight, bias, running_mean, running_var, options);
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::forward, options.implementation);
  const Tensor dense = channel_dense(x);
  const TensorOptions statistics{.dtype = float64, .device = x.device()};
  const bool empty_batch = x.numel() == 0;
  BatchNormForward t{
      .x = dense, .weight = weight, .bias = bias, .mean = {}, .variance = {}, .y = empty_like(dense)};
  if (options.training) {
    t.mean = zeros({problem.view.channels}, statistics);
    t.variance = zeros({problem.view.channels}, statistics);
  } else {
    t.mean = to_format(cast(running_mean, float64), MemoryFormat::contiguous);
    t.variance = to_format(cast(running_var, float64), MemoryFormat::contiguous);
  }
  if (!empty_batch) implementation.forward(problem, t);
  if (options.training && running_mean.defined() && !empty_batch) {
    const double momentum =
        options.momentum ? *options.momentum : 1 / (static_cast<double>(options.batches_tracked) + 1);
    const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
    update_running(running_mean, t.mean, momentum, 1);
    update_running(running_var, t.variance, momentum, n / (n - 1));
  }
  // Copies: the running statistics go on changing, those that backward reads must not.
  const Tensor mean = options.training ? t.mean : copy(t.mean);
  return {t.y, mean, reciprocal_deviation(t.variance, options.eps)};
}

BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& mean, const Tensor& rstd, const BatchNormOptions& options,
                                   bool need_input, const char* op) {
  const BatchNormProblem problem = batch_norm_backward_problem(op, dy, x, weight, mean, rstd, options);
  const std::string& own = options.backward_implementation;
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::backward, own.empty() ? options.implementation : own);
  const Tensor dense = channel_dense(x);
  const TensorOptions statistics{.dtype = float64, .device = x.device()};
  const BatchNormBackward t{.dy = laid_out_as(dy, dense),
                            .x = dense,
                            .weight = weight,
                            .mean = mean,
                            .rstd = rstd,
                            .dx = need_input ? empty_like(dense) : Tensor(),
                            .dweight = zeros({problem.view.channels}, statistics),
                            .dbias = zeros({problem.view.channels}, statistics)};
  if (x.numel() != 0) implementation.backward(problem, t);
  const DType parameters = weight.defined() ? weight.dtype() : compute_dtype(x.dtype());
  return {t.dx, cast(t.dweight, parameters), cast(t.dbias, parameters)};
}

}  // namespace pleat::ops
