#include "pleat/ops/norm/problem.h"

#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/half.h"
#include "pleat/ops/spatial/channels_hint.h"

namespace pleat {

std::string to_string(const Bounds& bounds) { return fmt::format("[{}, {}]", bounds.min, bounds.max); }

namespace ops {

Bounds rounded(const Bounds& bounds, DType dtype) {
  if (!is_half(dtype)) return bounds;
  const auto round = [&](double value) {
    const auto single = static_cast<float>(value);
    return static_cast<double>(dtype == float16 ? static_cast<float>(Half(single))
                                                : static_cast<float>(BFloat16(single)));
  };
  return {round(bounds.min), round(bounds.max)};
}

namespace {

BatchNormProblem problem_of(const Tensor& x, const BatchNormOptions& options) {
  BatchNormProblem problem;
  problem.view = channel_view(x);
  problem.dtype = x.dtype();
  problem.device = x.device();
  problem.training = options.training;
  problem.eps = options.eps;
  problem.bounds = rounded(options.bounds, x.dtype());
  problem.residual = options.residual.defined();
  return problem;
}

void check_input(const char* op, const Tensor& x) {
  check<ShapeError>(x.rank() >= 2, "{}: input must be [N, C] or [N, C, spatial...], got {}", op, x);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
}

void check_options(const char* op, const BatchNormOptions& options) {
  check<ValueError>(options.eps > 0 && std::isfinite(options.eps), "{}: eps must be above 0, got {}", op,
                    options.eps);
  check<ValueError>(options.bounds.min <= options.bounds.max, "{}: bounds must have min <= max, got {}", op,
                    [&] { return to_string(options.bounds); });
  if (options.momentum)
    check<ValueError>(*options.momentum >= 0 && *options.momentum <= 1,
                      "{}: momentum must be in [0, 1], got {}", op, *options.momentum);
}

void check_residual(const char* op, const char* what, const Tensor& residual, const Tensor& x) {
  if (!residual.defined()) return;
  check<ShapeError>(residual.shape() == x.shape(), "{}: {} must be {} like the input, got {}", op, what,
                    x.shape(), residual);
  check<DTypeError>(residual.dtype() == x.dtype(), "{}: {} must be {} like the input, got {}", op, what,
                    x.dtype(), residual);
  check<DeviceError>(residual.device() == x.device(), "{}: {} must be on {} like the input, got {}", op, what,
                     x.device(), residual);
}

void check_running(const char* op, const Tensor& running_mean, const Tensor& running_var,
                   const BatchNormOptions& options) {
  check<ValueError>(running_mean.defined() == running_var.defined(),
                    "{}: running_mean and running_var go together, got only one", op);
  check<ValueError>(
      options.training || running_mean.defined(),
      "{}: without running statistics there is nothing to normalise with outside training; pass them or "
      "set .training = true",
      op);
  for (const Tensor& running : {running_mean, running_var})
    check<ShapeError>(!running.defined() || running.is_dense(),
                      "{}: running statistics are written to and must be dense, got {}", op, running);
}

}  // namespace

std::string BatchNormProblem::describe() const {
  return fmt::format("{} [{}, {}, {}] {} {}{}{}{}", training ? "training" : "evaluation", view.images,
                     view.channels, view.pixels, dtype, device, view.channels_last ? " channels_last" : "",
                     residual ? " with residual" : "", bounds.any() ? " within " + to_string(bounds) : "");
}

void check_per_channel(const char* op, const char* what, const Tensor& t, const Tensor& x, DType dtype) {
  if (!t.defined()) return;
  if (t.rank() != 1 || t.size(0) != x.size(1))
    fail<ShapeError>(
        "{}: {} must be [{}], one number for each channel of the input, got {}; channels are dimension 1{}",
        op, what, x.size(1), t, t.rank() == 1 ? channels_last_hint(x.shape(), t.size(0)) : "");
  check<DTypeError>(t.dtype() == dtype || (is_half(dtype) && t.dtype() == float32),
                    "{}: {} must be {}{}, got {}; the input is {}: convert one, for instance with x.to({})",
                    op, what, dtype, is_half(dtype) ? " or float32" : "", t, dtype, t.dtype());
  check<DeviceError>(t.device() == x.device(), "{}: {} must be on {} like the input, got {}", op, what,
                     x.device(), t);
}

void check_count(const char* op, const Tensor& number, const Tensor& x) {
  if (!number.defined()) return;
  check<ShapeError>(number.numel() == 1, "{}: num_batches_tracked must be one number, got {}", op, number);
  check<DTypeError>(number.dtype() == int64, "{}: num_batches_tracked must be int64, got {}", op, number);
  check<DeviceError>(number.device() == x.device(),
                     "{}: num_batches_tracked must be on {} like the input, got {}", op, x.device(), number);
}

BatchNormProblem batch_norm_problem(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const Tensor& running_mean, const Tensor& running_var,
                                    const BatchNormOptions& options) {
  check_input(op, x);
  check_options(op, options);
  const BatchNormProblem problem = problem_of(x, options);
  check_per_channel(op, "weight", weight, x, x.dtype());
  check_per_channel(op, "bias", bias, x, x.dtype());
  check_per_channel(op, "running_mean", running_mean, x, x.dtype());
  check_per_channel(op, "running_var", running_var, x, x.dtype());
  check_running(op, running_mean, running_var, options);
  check_residual(op, "the residual", options.residual, x);
  check_count(op, options.num_batches_tracked, x);
  check<ShapeError>(
      !options.training || problem.view.images * problem.view.pixels != 1,
      "{}: training needs more than one value per channel, got input {}; use a larger batch, or "
      "evaluation",
      op, x);
  return problem;
}

BatchNormProblem batch_norm_backward_problem(const char* op, const Tensor& dy, const Tensor& x,
                                             const Tensor& weight, const Tensor& bias, const Tensor& mean,
                                             const Tensor& rstd, const Tensor& y, const Tensor& more_dy,
                                             const BatchNormOptions& options) {
  check_input(op, x);
  check_options(op, options);
  BatchNormProblem problem = problem_of(x, options);
  problem.residual = y.defined();
  check_residual(op, "the result", y, x);
  check_residual(op, "the second gradient", more_dy, x);
  check<ShapeError>(dy.shape() == x.shape(), "{}: the gradient must be {} like the input, got {}", op,
                    x.shape(), dy);
  check<DTypeError>(dy.dtype() == x.dtype(), "{}: the gradient must be {} like the input, got {}", op,
                    x.dtype(), dy);
  check<DeviceError>(dy.device() == x.device(), "{}: the gradient must be on {} like the input, got {}", op,
                     x.device(), dy);
  check_per_channel(op, "weight", weight, x, x.dtype());
  check_per_channel(op, "bias", bias, x, x.dtype());
  check_per_channel(op, "saved mean", mean, x, float64);
  check_per_channel(op, "saved rstd", rstd, x, float64);
  return problem;
}

}  // namespace ops
}  // namespace pleat
