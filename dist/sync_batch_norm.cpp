#include "pleat/dist/sync_batch_norm.h"

#include <utility>
#include <vector>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/dist/collectives.h"
#include "pleat/nn/norm.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/norm/problem.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat::dist {
namespace {

void check_operands(const Tensor& x, const std::vector<std::pair<const char*, Tensor>>& per_channel) {
  check<ShapeError>(x.rank() >= 2, "sync_batch_norm: needs [N, C, spatial...], got {}", x);
  check<DTypeError>(is_floating(x.dtype()),
                    "sync_batch_norm: input must be floating, got {}; convert it with to(float32)", x);
  for (const auto& [what, t] : per_channel) ops::check_per_channel("sync_batch_norm", what, t, x, x.dtype());
}

/// The mean and variance of each channel, [C], over all ranks.
struct Statistics {
  Tensor mean, var;
  double count = 0;  ///< elements of a channel
};

Statistics statistics_of(const Tensor& x, const Dims& others, const Communicator& world) {
  const int64_t channels = x.size(1);
  const VarMean own = var_mean(x, others, {.correction = 0});
  const Tensor count = full({1}, static_cast<double>(x.numel()) / static_cast<double>(channels),
                            {.dtype = x.dtype(), .device = x.device()});
  const Tensor all = all_gather(unsqueeze(cat({own.mean, own.var, count}), 0), world);
  const Tensor means = narrow(all, 1, 0, channels), vars = narrow(all, 1, channels, channels);
  const Tensor counts = narrow(all.detach(), 1, 2 * channels, 1);  // [ranks, 1]
  const Tensor shares = counts / sum(counts);
  const Tensor mean = sum(means * shares, 0);
  return {mean, sum((vars + square(means - mean)) * shares, 0), sum(counts).item()};
}

void update_running(const Tensor& running_mean, const Tensor& running_var, const Statistics& batch,
                    const BatchNormOptions& options) {
  if (!running_mean.defined()) return;
  const NoGrad off;
  double weight = 1;
  if (options.momentum)
    weight = *options.momentum;
  else if (options.num_batches_tracked.defined())
    weight = 1 / (options.num_batches_tracked.item() + 1);
  const auto mix = [&](const Tensor& running, const Tensor& of_batch) {
    ops::copy_into(running, running * (1 - weight) + of_batch * weight);
  };
  mix(running_mean, batch.mean);
  mix(running_var, batch.var * (batch.count / (batch.count - 1)));
  if (!options.num_batches_tracked.defined()) return;
  ops::copy_into(options.num_batches_tracked, options.num_batches_tracked + 1);
}

}  // namespace

Tensor sync_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const Communicator& world,
                       const BatchNormOptions& options) {
  if (!options.training || world.size() == 1)
    return batch_norm(x, weight, bias, running_mean, running_var, options);
  check_operands(
      x, {{"weight", weight}, {"bias", bias}, {"running_mean", running_mean}, {"running_var", running_var}});
  check<ShapeError>(!options.residual.defined() || options.residual.shape() == x.shape(),
                    "sync_batch_norm: the residual must have the input's shape {}", x.shape());
  std::vector<int64_t> others{0};
  Shape per_channel(x.shape().size(), 1);
  per_channel[1] = x.size(1);
  for (int64_t d = 2; d < x.rank(); ++d) others.push_back(d);
  const auto as_channels = [&](const Tensor& t) { return reshape(t, per_channel); };

  const DType compute = compute_dtype(x.dtype());
  const Tensor wide = x.to(compute);
  const Statistics batch = statistics_of(wide, others, world);
  check<ValueError>(
      batch.count > 1,
      "sync_batch_norm: all ranks together have one value of each channel, of which there is no "
      "variance; take a larger batch");
  Tensor scale = rsqrt(batch.var + options.eps);
  if (weight.defined()) scale = scale * weight.to(compute);
  Tensor y = (wide - as_channels(batch.mean)) * as_channels(scale);
  if (bias.defined()) y = y + as_channels(bias.to(compute));
  if (options.residual.defined()) y = y + options.residual.to(compute);
  if (options.bounds.any()) y = clamp(y, options.bounds.min, options.bounds.max);
  update_running(running_mean, running_var, batch, options);
  return y.to(x.dtype());
}

int64_t convert_sync_batch_norm(nn::Module& net, const Communicator& world) {
  if (world.size() == 1) return 0;
  int64_t converted = 0;
  for (const auto& [name, module] : net.named_modules()) {
    auto* norm = dynamic_cast<nn::BatchNormModule*>(module);
    if (norm == nullptr) continue;
    ++converted;
    norm->function = [world](const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& running_mean, const Tensor& running_var,
                             const BatchNormOptions& options) {
      return sync_batch_norm(x, weight, bias, running_mean, running_var, world, options);
    };
  }
  return converted;
}

}  // namespace pleat::dist
