// Host and device.
#include "pleat/nn/optim/clip_grad.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/optim/gradients.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/update/joint_norm.h"
#include "pleat/ops/update/update.h"

namespace pleat::optim {
namespace {

/// In double, as the factor for a large norm may be below float's range.
struct ScaleBy {
  static constexpr std::size_t operands = 1;
  double factor;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    x = T(static_cast<double>(x) * factor);
  }
};

/// By a factor that is where the elements are.
struct ScaleByOf {
  static constexpr std::size_t operands = 1;
  const double* factor;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    ScaleBy{*factor}(x);
  }
};

struct ClampTo {
  static constexpr std::size_t operands = 1;
  double limit;

  template <class T>
  PLEAT_HOST_DEVICE void operator()(T& x) const {
    x = x < -T(limit) ? -T(limit) : x > T(limit) ? T(limit) : x;
  }
};

constexpr const char* norm_op = "clip_grad_norm_";

template <class F>
void change_all(const std::string& op, const F& f, const std::vector<Tensor>& grads) {
  std::vector<ops::Update<F>> updates;
  for (const Tensor& grad : grads) updates.push_back({f, {grad}});
  ops::update(op, updates);
}

void check_finite(double norm) {
  check<NumericError>(std::isfinite(norm), "{}: the norm of the gradients is {}", norm_op, norm);
}

Tensor clip_on_device(const std::vector<Tensor>& grads, const ClipGradNormOptions& options) {
  const Tensor pair = ops::joint_norm(norm_op, grads, options.norm_type, options.max_norm);
  const Tensor norm = select(pair, 0, 0);
  if (options.error_if_nonfinite) check_finite(norm.item());
  const double* const factor = pair.data<double>() + 1;
  // The host can see that nothing is to be done where it need not wait for it.
  if (pair.device().is_cuda() || *factor != 1) change_all(norm_op, ScaleByOf{factor}, grads);
  return norm;
}

/// The host combines the norms of the devices' gradients.
Tensor clip_on_devices(const std::vector<std::vector<Tensor>>& groups, const ClipGradNormOptions& options) {
  std::vector<Tensor> norms;
  for (const std::vector<Tensor>& grads : groups)
    norms.push_back(ops::joint_norm(norm_op, grads, options.norm_type, options.max_norm));
  std::vector<double> values;
  for (const Tensor& pair : norms) values.push_back(pair.to_vector<double>()[0]);
  const Tensor all = from_vector(values, values.size(), Device());
  const Tensor pair = ops::joint_norm(norm_op, {all}, options.norm_type, options.max_norm);
  const std::vector<double> total = pair.to_vector<double>();
  if (options.error_if_nonfinite) check_finite(total[0]);
  for (const std::vector<Tensor>& grads : groups) change_all(norm_op, ScaleBy{total[1]}, grads);
  return select(pair, 0, 0);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& params, ClipGradNormOptions options) {
  const double max_norm = options.max_norm;
  const double p = options.norm_type;
  check<ValueError>(max_norm >= 0, "clip_grad_norm_: max_norm must be at least 0, got {}", max_norm);
  check<ValueError>(p > 0, "clip_grad_norm_: norm_type must be above 0, got {}", p);
  const std::vector<std::vector<Tensor>> groups = by_device(gradients_of(params));
  if (groups.empty()) fail_without_gradients("clip_grad_norm_", params);
  return groups.size() == 1 ? clip_on_device(groups[0], options) : clip_on_devices(groups, options);
}

void clip_grad_value_(const std::vector<Tensor>& params, ClipGradValueOptions options) {
  const double limit = options.clip_value;
  check<ValueError>(limit >= 0, "clip_grad_value_: clip_value must be at least 0, got {}", limit);
  const std::vector<Tensor> grads = gradients_of(params);
  if (grads.empty()) fail_without_gradients("clip_grad_value_", params);
  change_all("clip_grad_value_", ClampTo{limit}, grads);
}

}  // namespace pleat::optim
