#include "pleat/nn/optim/clip_grad.h"

#include <algorithm>
#include <cmath>

#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::optim {
namespace {

std::vector<Tensor> grads_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> grads;
  for (const Tensor& param : params)
    if (const Tensor grad = param.grad(); grad.defined()) grads.push_back(grad);
  return grads;
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& params, ClipGradNormOptions options) {
  const double max_norm = options.max_norm;
  const double p = options.norm_type;
  check<ValueError>(max_norm >= 0, "clip_grad_norm_: max_norm must be at least 0, got {}", max_norm);
  check<ValueError>(p > 0, "clip_grad_norm_: norm_type must be above 0, got {}", p);
  const std::vector<Tensor> grads = grads_of(params);
  double total = 0;
  for (const Tensor& grad : grads) {
    // A norm of half numbers need not fit a half number.
    const double norm = ops::norm(ops::cast(grad, compute_dtype(grad.dtype())), {}, {.p = p}).item();
    if (std::isnan(norm))
      total = norm;
    else if (std::isinf(p))
      total = std::isnan(total) ? total : std::max(total, norm);
    else
      total += std::pow(norm, p);
  }
  if (!std::isinf(p)) total = std::pow(total, 1 / p);
  if (!std::isfinite(total)) {
    check<NumericError>(!options.error_if_nonfinite, "clip_grad_norm_: the norm of the gradients is {}",
                        total);
    return total;
  }
  const double factor = max_norm / (total + 1e-6);
  if (factor < 1)
    for (const Tensor& grad : grads) ops::multiply_into(grad, grad, ops::number_like(factor, grad));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& params, ClipGradValueOptions options) {
  const double limit = options.clip_value;
  check<ValueError>(limit >= 0, "clip_grad_value_: clip_value must be at least 0, got {}", limit);
  for (const Tensor& grad : grads_of(params)) ops::clamp_into(grad, grad, {.min = -limit, .max = limit});
}

}  // namespace pleat::optim
