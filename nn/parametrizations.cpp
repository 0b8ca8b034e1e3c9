#include "pleat/nn/parametrizations.h"

#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/random/random.h"
#include "pleat/nn/option_checks.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/matmul/distance.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::nn::detail {
namespace {

Tensor matrix(const Tensor& weight, int64_t dim) { return flatten(movedim(weight, dim, 0), 1); }
Tensor unit(const Tensor& x, double eps) { return normalize(x, {.dim = 0, .eps = eps}); }

}  // namespace

void check_layer(const Module& wrapper, const Module& layer, const Tensor& weight,
                 std::optional<int64_t>& dim) {
  const std::string name = wrapper.type_name();
  check<ValueError>(
      weight.defined() && weight.rank() > 0 && weight.numel() > 0 && is_floating(weight.dtype()),
      "{}: the layer must have a floating weight of at least one dimension, got {}", name, layer.type_name());
  check<ValueError>(!layer.has_hooks(),
                    "{}: the layer has hooks, which would not be called; register them with the {}", name,
                    name);
  check<IndexError>(!dim || (*dim >= -weight.rank() && *dim < weight.rank()),
                    "{}: dim must be one of the weight {}, got {}", name, weight.shape(), dim.value_or(0));
  if (dim && *dim < 0) *dim += weight.rank();
}

Tensor magnitudes(const Tensor& v, const std::optional<int64_t>& dim) {
  if (!dim) return norm(v);
  Dims others;
  for (int64_t d = 0; d < v.rank(); ++d)
    if (d != *dim) others.push_back(d);
  return others.empty() ? abs(v) : norm(v, others, {.keepdim = true});
}

Tensor with_magnitudes(const Tensor& g, const Tensor& v, const std::optional<int64_t>& dim) {
  return v * (g / magnitudes(v, dim));
}

void check_options(const SpectralNormOptions& options) {
  check<ValueError>(options.n_power_iterations >= 1 && options.n_power_iterations <= 1000,
                    "SpectralNorm: n_power_iterations must be in [1, 1000], got {}",
                    options.n_power_iterations);
  check_at_least_0("SpectralNorm", "eps", options.eps);
}

void power_iteration(const Tensor& weight, const SpectralNormOptions& by, int64_t steps, Tensor& u,
                     Tensor& v) {
  if (weight.rank() == 1) return;
  const NoGrad off_the_tape;
  const Tensor w = matrix(weight, *by.dim);
  const TensorOptions like{.dtype = w.dtype(), .device = w.device()};
  if (!u.defined()) u = unit(randn({w.size(0)}, like), by.eps), v = unit(randn({w.size(1)}, like), by.eps);
  for (int64_t i = 0; i < steps; ++i) {
    copy_(u, unit(matmul(w, v), by.eps));
    copy_(v, unit(matmul(u, w), by.eps));
  }
}

Tensor spectrally_normal(const Tensor& weight, const SpectralNormOptions& by, const Tensor& u,
                         const Tensor& v) {
  if (weight.rank() == 1) return unit(weight, by.eps);
  // Copies, since the next call in training mode changes them before this one's backward, perhaps.
  return weight / matmul(clone(u), matmul(matrix(weight, *by.dim), clone(v)));
}

}  // namespace pleat::nn::detail
