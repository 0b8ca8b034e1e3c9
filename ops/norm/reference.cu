#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/grid.h"
#include "pleat/ops/norm/batch_norm_functors.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/per_channel.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
namespace {

ChannelSteps steps_of(const ChannelView& view) {
  return {view.images, view.channels, view.pixels, view.channels_last};
}

/// One value or one channel a thread, in float64: what every other implementation is compared with.
class Reference final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "reference"; }

  std::string unsupported(const BatchNormProblem& problem) const override {
    (void)problem;
    return {};
  }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    // float64 holds every other floating type exactly: one instance of the functors serves them all.
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    const Tensor y = empty_like(x);
    if (problem.training)
      grid_for("batch_norm", problem.device, steps.channels,
               ChannelStatistics<double>{steps, x.data<double>(), t.mean.data<double>(),
                                         t.variance.data<double>()});
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
    const Tensor rstd = reciprocal_deviation(t.variance, problem.eps);
    grid_for("batch_norm", problem.device, x.numel(),
             Normalize<double>{steps, x.data<double>(), t.mean.data<double>(), rstd.data<double>(),
                               weight.data<double>(), bias.data<double>(), y.data<double>()});
    copy_into(t.y, y);
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    const Tensor dy = cast(t.dy, float64);
    const double* mean = t.mean.data<double>();
    const double* rstd = t.rstd.data<double>();
    double* dweight = t.dweight.data<double>();
    double* dbias = t.dbias.data<double>();
    grid_for(
        "batch_norm", problem.device, steps.channels,
        ChannelGradients<double>{steps, dy.data<double>(), x.data<double>(), mean, rstd, dweight, dbias});
    if (!t.dx.defined()) return;
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor dx = empty_like(x);
    grid_for("batch_norm", problem.device, x.numel(),
             NormalizeBackward<double>{steps, problem.training, dy.data<double>(), x.data<double>(), mean,
                                       rstd, weight.data<double>(), dweight, dbias, dx.data<double>()});
    copy_into(t.dx, dx);
  }
};

}  // namespace

const BatchNormImplementation& reference_batch_norm() {
  static const Reference reference;
  return reference;
}

}  // namespace pleat::ops
