#include <cmath>
#include <vector>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/ops/norm/batch_norm_functors.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/per_channel.h"

namespace pleat::ops {
namespace {

ChannelSteps steps_of(const ChannelView& view) {
  return {view.images, view.channels, view.pixels, view.channels_last};
}

/// The functors that a GPU runs, run on the CPU: what every other implementation is compared with.
class Reference final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "reference"; }

  std::string unsupported(const BatchNormProblem& problem) const override {
    return problem.device.is_cpu() ? "" : "it runs on the CPU";
  }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    // float64 holds every other floating type exactly: one instance of the functors serves them all.
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    const Tensor y = empty_like(x);
    double* variance = t.variance.data<double>();
    if (problem.training)
      for_each_index(steps.channels,
                     ChannelStatistics<double>{steps, x.data<double>(), t.mean.data<double>(), variance});
    const std::vector<double> weight = per_channel(t.weight, steps.channels, 1);
    const std::vector<double> bias = per_channel(t.bias, steps.channels, 0);
    std::vector<double> rstd(weight.size());
    for (std::size_t c = 0; c < rstd.size(); ++c) rstd[c] = 1 / std::sqrt(variance[c] + problem.eps);
    for_each_index(x.numel(), Normalize<double>{steps, x.data<double>(), t.mean.data<double>(), rstd.data(),
                                                weight.data(), bias.data(), y.data<double>()});
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
    for_each_index(steps.channels, ChannelGradients<double>{steps, dy.data<double>(), x.data<double>(), mean,
                                                            rstd, dweight, dbias});
    if (!t.dx.defined()) return;
    const std::vector<double> weight = per_channel(t.weight, steps.channels, 1);
    const Tensor dx = empty_like(x);
    for_each_index(x.numel(),
                   NormalizeBackward<double>{steps, problem.training, dy.data<double>(), x.data<double>(),
                                             mean, rstd, weight.data(), dweight, dbias, dx.data<double>()});
    copy_into(t.dx, dx);
  }
};

}  // namespace

const BatchNormImplementation& cpu_reference_batch_norm() {
  static const Reference reference;
  return reference;
}

}  // namespace pleat::ops
