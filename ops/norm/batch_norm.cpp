#include "pleat/ops/norm/batch_norm.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/limit.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
namespace {

RunningStatistics copied(RunningStatistics running) {
  for (Tensor* t : {&running.mean, &running.var, &running.count})
    if (t->defined()) *t = copy(*t);
  return running;
}

BatchNormForward with_result(BatchNormForward t) {
  t.y = empty_like(t.x);
  return t;
}

/// What the time of a pass depends on beside its problem.
std::string conditions_text(std::initializer_list<std::pair<const char*, Tensor>> operands) {
  std::string text;
  for (const auto& [role, tensor] : operands)
    if (tensor.defined()) text += fmt::format(" {} {}", role, tensor.dtype());
  return text;
}

}  // namespace

BatchNormResult batch_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                   const Tensor& running_mean, const Tensor& running_var,
                                   const BatchNormOptions& options, const char* op, const Moments* moments,
                                   std::shared_ptr<const Normalization>* pending) {
  const RecordOp range(op, x, weight, bias);
  const BatchNormProblem problem =
      batch_norm_problem(op, x, weight, bias, running_mean, running_var, options);
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
                           .moments = moments,
                           .y = {}};
  if (zero) reciprocal_deviation(t.variance, options.eps, t.rstd);
  if (!options.training) read_running(running_mean, running_var, options.eps, t.mean, t.variance, t.rstd);
  std::optional<BatchNormForward> tried;
  const BatchNormTrial trial{
      [&](const BatchNormImplementation& one) {
        if (!tried) {
          tried = with_result(t);
          tried->running = copied(running);
        }
        one.forward(problem, *tried);
      },
      [&] {
        return conditions_text({{"weight", weight}, {"bias", bias}, {"running", running.mean}});
      }};
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::forward, options, trial);
  range.details([&] { return RangeDetails{.implementation = implementation.name()}; });
  // What would keep a copy of x does not stay pending.
  if (pending != nullptr && !empty_batch && dense.shared_impl() == x.shared_impl()) {
    *pending = implementation.normalization(problem, t);
    if (*pending != nullptr) return {{}, t.mean, t.rstd};
  }
  const BatchNormForward complete = with_result(t);
  if (!empty_batch) implementation.forward(problem, complete);
  return {complete.y, t.mean, t.rstd};
}

BatchNormGrads batch_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                   const Tensor& bias, const Tensor& mean, const Tensor& rstd,
                                   const BatchNormOptions& options, bool need_input, const char* op,
                                   const Tensor& y, const Tensor& more_dy, const GradientSums* sums) {
  const RecordOp range(op, "_backward", dy, x, weight);
  const BatchNormProblem problem =
      batch_norm_backward_problem(op, dy, x, weight, bias, mean, rstd, y, more_dy, options);
  const Tensor dense = channel_dense(x);
  const DType parameters = weight.defined() ? weight.dtype() : compute_dtype(x.dtype());
  const TensorOptions gradients{.dtype = parameters, .device = x.device()};
  const Shape shape{problem.view.channels};
  const bool empty_batch = x.numel() == 0;
  const auto compute = [&](const BatchNormImplementation& implementation) -> BatchNormGrads {
    BatchNormProblem solved = problem;
    const bool opens = y.defined() && (implementation.opens_by_result() || empty_batch);
    const Tensor sum = more_dy.defined() && !opens ? add(dy, more_dy) : dy;
    Tensor open;
    if (opens) {
      open = empty_like(dense);
    } else if (y.defined()) {
      open = laid_out_as(limit_backward(sum, y, problem.bounds), dense);
      solved.bounds = {};
    }
    const BatchNormBackward t{.dy = y.defined() && !opens ? open : laid_out_as(sum, dense),
                              .x = dense,
                              .weight = weight,
                              .bias = bias,
                              .mean = to_format(mean, MemoryFormat::contiguous),
                              .rstd = to_format(rstd, MemoryFormat::contiguous),
                              .sums = y.defined() || more_dy.defined() ? nullptr : sums,
                              .more_dy = opens && more_dy.defined() ? laid_out_as(more_dy, dense) : Tensor(),
                              .y = opens ? laid_out_as(y, dense) : Tensor(),
                              .dresidual = open,
                              .dx = need_input ? empty_like(dense) : Tensor(),
                              .dweight = empty_batch ? zeros(shape, gradients) : empty(shape, gradients),
                              .dbias = empty_batch ? zeros(shape, gradients) : empty(shape, gradients)};
    if (!empty_batch) implementation.backward(solved, t);
    return {t.dx, t.dweight, t.dbias, t.dresidual};
  };
  const BatchNormTrial trial{[&](const BatchNormImplementation& one) { (void)compute(one); },
                             [&] {
                               return conditions_text({{"weight", weight}, {"y", y}, {"more_dy", more_dy}}) +
                                      (need_input ? " to input" : "");
                             }};
  const BatchNormImplementation& implementation =
      choose_batch_norm(op, problem, BatchNormPass::backward, options, trial);
  range.details([&] { return RangeDetails{.implementation = implementation.name()}; });
  return compute(implementation);
}

}  // namespace pleat::ops
