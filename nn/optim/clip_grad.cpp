#include "pleat/nn/optim/clip_grad.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// Each gradient once: those given twice must not be changed twice.
std::vector<Tensor> grads_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> grads;
  std::set<const std::byte*> known;
  for (const Tensor& param : params)
    if (const Tensor grad = param.grad();
        grad.defined() && (grad.numel() == 0 || known.insert(grad.raw()).second))
      grads.push_back(grad);
  return grads;
}

/// The norm of each gradient, in any order. The host waits once for each device.
std::vector<double> norms_of(std::vector<Tensor> grads, double p) {
  std::vector<double> norms;
  while (!grads.empty()) {
    const Device device = grads[0].device();
    const auto end = std::stable_partition(grads.begin(), grads.end(),
                                           [&](const Tensor& grad) { return grad.device() == device; });
    std::vector<Tensor> on_device;
    for (auto grad = grads.begin(); grad != end; ++grad)
      // A norm of half numbers need not fit a half number.
      on_device.push_back(ops::norm(ops::cast(*grad, compute_dtype(grad->dtype())), {}, {.p = p}));
    const std::vector<double> values = ops::stack(on_device).to_vector<double>();
    norms.insert(norms.end(), values.begin(), values.end());
    grads.erase(grads.begin(), end);
  }
  return norms;
}

template <class F>
void change_all(const std::string& op, const F& f, const std::vector<Tensor>& grads) {
  std::vector<ops::Update<F>> updates;
  for (const Tensor& grad : grads) updates.push_back({f, {grad}});
  ops::update(op, updates);
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& params, ClipGradNormOptions options) {
  const double max_norm = options.max_norm;
  const double p = options.norm_type;
  check<ValueError>(max_norm >= 0, "clip_grad_norm_: max_norm must be at least 0, got {}", max_norm);
  check<ValueError>(p > 0, "clip_grad_norm_: norm_type must be above 0, got {}", p);
  const std::vector<Tensor> grads = grads_of(params);
  double total = 0;
  for (const double norm : norms_of(grads, p)) {
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
  if (factor < 1) change_all("clip_grad_norm_", ops::ScaleBy{factor}, grads);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& params, ClipGradValueOptions options) {
  const double limit = options.clip_value;
  check<ValueError>(limit >= 0, "clip_grad_value_: clip_value must be at least 0, got {}", limit);
  change_all("clip_grad_value_", ops::ClampTo{{ops::Bounds(-limit, limit)}}, grads_of(params));
}

}  // namespace pleat::optim
