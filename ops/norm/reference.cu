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

  std::string unsupported(const BatchNormProblem&, BatchNormPass) const override { return {}; }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    // float64 holds every other floating type exactly: one instance of the functors serves them all.
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    const Tensor residual = t.residual.defined() ? cast(t.residual, float64) : Tensor();
    const Tensor y = empty_like(x);
    if (problem.training)
      grid_for("batch_norm", problem.device, steps.channels,
               ChannelStatistics<double>{steps, x.data<double>(), problem.eps, t.mean.data<double>(),
                                         t.variance.data<double>(), t.rstd.data<double>()});
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
    grid_for("batch_norm", problem.device, x.numel(),
             Normalize<double>{steps, problem.relu, x.data<double>(),
                               ChannelNumbers{t.mean.data<double>(), t.rstd.data<double>(),
                                              weight.data<double>(), bias.data<double>()},
                               residual.defined() ? residual.data<double>() : nullptr, y.data<double>()});
    copy_into(t.y, y);
    if (problem.training && t.running.defined()) update_running(t.running, t.mean, t.variance);
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    Tensor dy = cast(t.dy, float64);
    const double* mean = t.mean.data<double>();
    const double* rstd = t.rstd.data<double>();
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    if (problem.relu) {
      const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
      const Tensor open = empty_like(dy);
      grid_for("batch_norm", problem.device, x.numel(),
               ReluGradient<double>{steps, dy.data<double>(), x.data<double>(),
                                    ChannelNumbers{mean, rstd, weight.data<double>(), bias.data<double>()},
                                    open.data<double>()});
      dy = open;
    }
    const Tensor exact_dweight = empty({problem.view.channels}, {.dtype = float64, .device = problem.device});
    const Tensor exact_dbias = empty_like(exact_dweight);
    double* dweight = exact_dweight.data<double>();
    double* dbias = exact_dbias.data<double>();
    grid_for(
        "batch_norm", problem.device, steps.channels,
        ChannelGradients<double>{steps, dy.data<double>(), x.data<double>(), mean, rstd, dweight, dbias});
    copy_into(t.dweight, exact_dweight);
    copy_into(t.dbias, exact_dbias);
    if (!t.dx.defined()) return;
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
