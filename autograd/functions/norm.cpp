#include "pleat/autograd/functions/norm.h"

#include <cmath>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/create.h"
#include "pleat/core/elementwise.h"

namespace pleat {
namespace {

/// 1 / sqrt(x + eps)
Tensor reciprocal_root(const Tensor& x, double eps) {
  const Tensor y = empty_like(x);
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_floating_point_v<T>)
      elementwise<T, T>("batch_norm", y, {x}, [eps](T* to, const T* from, int64_t n) {
        for (int64_t i = 0; i < n; ++i) to[i] = 1 / std::sqrt(from[i] + static_cast<T>(eps));
      });
  });
  return record("rsqrt", y,
                {grad_of(x, [y = saved(y)](const Tensor& dy) { return dy * *y * *y * *y * -0.5; })});
}

/// [C] seen as [1, C, 1...], of `rank` dimensions.
Tensor as_channels(const Tensor& t, int64_t rank) {
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape[1] = t.numel();
  return reshape(t, shape);
}

/// The gradients of batch_norm, written with differentiable functions: for gradients of gradients, where mean
/// and rstd depend on x.
Grads batch_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd, const BatchNormOptions& options, const Needs& needs) {
  const int64_t rank = x.rank();
  std::vector<int64_t> others{0};
  for (int64_t d = 2; d < rank; ++d) others.push_back(d);
  const auto over_others = [&](const Tensor& t) { return sum(t, others, true); };
  const DType compute = compute_dtype(x.dtype());
  const Tensor g = dy.to(compute);
  const Tensor wide = x.to(compute);
  const double values = static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
  Tensor centred = wide - as_channels(mean.to(compute), rank);
  Tensor r = as_channels(rstd.to(compute), rank);
  if (options.training) {
    centred = wide - over_others(wide) / values;
    r = reciprocal_root(over_others(centred * centred) / values, options.eps);
  }
  const Tensor normal = centred * r;
  const Tensor dbias = over_others(g);
  const Tensor dweight = over_others(g * normal);
  Grads grads(3);
  if (needs[0]) {
    const Tensor scale = weight.defined() ? as_channels(weight.to(compute), rank) * r : r;
    grads[0] = scale * (options.training ? g - (dbias + normal * dweight) / values : g);
  }
  if (needs[1]) grads[1] = reshape(dweight, {x.size(1)});
  if (needs[2]) grads[2] = reshape(dbias, {x.size(1)});
  return grads;
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options) {
  const ops::BatchNormResult result =
      ops::batch_norm_forward(x, weight, bias, running_mean, running_var, options);
  return record("batch_norm", result.y, {x, weight, bias},
                [x = saved(x), weight = saved(weight), mean = saved(result.mean), rstd = saved(result.rstd),
                 options](const Tensor& dy, const Needs& needs) -> Grads {
                  if (grad_enabled())
                    return batch_norm_gradients(dy, *x, *weight, *mean, *rstd, options, needs);
                  const ops::BatchNormGrads grads =
                      ops::batch_norm_backward(dy, *x, *weight, *mean, *rstd, options, needs[0]);
                  return {grads.x, grads.weight, grads.bias};
                });
}

}  // namespace pleat
