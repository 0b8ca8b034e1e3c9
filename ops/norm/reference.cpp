// Host and device.
#include <cmath>
#include <cstdint>

#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/per_channel.h"
#include "pleat/ops/norm/running_statistics.h"
#include "pleat/ops/spatial/limit.h"

namespace pleat::ops {
namespace {

/// Steps in elements of a view [images, channels, pixels] of either layout.
struct ChannelSteps {
  int64_t images, channels, pixels;
  bool channels_last;

  PLEAT_HOST_DEVICE int64_t at(int64_t n, int64_t c, int64_t p) const {
    return channels_last ? (n * pixels + p) * channels + c : (n * channels + c) * pixels + p;
  }
  PLEAT_HOST_DEVICE int64_t channel_of(int64_t element) const {
    return channels_last ? element % channels : element / pixels % channels;
  }
  PLEAT_HOST_DEVICE int64_t values() const { return images * pixels; }
};

/// mean[c], variance[c] (biased) and rstd[c] = 1 / sqrt(variance + eps) of channel c. T: element type, float
/// or double.
template <class T>
struct ChannelStatistics {
  ChannelSteps steps;
  const T* x;
  double eps;
  double* mean;
  double* variance;
  double* rstd;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double sum = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) sum += static_cast<double>(x[steps.at(n, c, p)]);
    const double middle = sum / static_cast<double>(steps.values());
    double squares = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) {
        const double d = static_cast<double>(x[steps.at(n, c, p)]) - middle;
        squares += d * d;
      }
    mean[c] = middle;
    variance[c] = squares / static_cast<double>(steps.values());
    rstd[c] = 1 / std::sqrt(variance[c] + eps);
  }
};

/// (x - mean) rstd weight + bias.
struct ChannelNumbers {
  const double* mean;
  const double* rstd;
  const double* weight;
  const double* bias;

  PLEAT_HOST_DEVICE double normalized(int64_t c, double x) const {
    return (x - mean[c]) * rstd[c] * weight[c] + bias[c];
  }
};

/// y[i] is x[i] normalised, plus residual[i] where there is one, within the limit.
template <class T>
struct Normalize {
  ChannelSteps steps;
  Limit<double> limit;
  const T* x;
  ChannelNumbers numbers;
  const T* residual;  ///< or null
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    double value = numbers.normalized(steps.channel_of(i), static_cast<double>(x[i]));
    if (residual != nullptr) value += static_cast<double>(residual[i]);
    y[i] = static_cast<T>(limit.limited(value));
  }
};

/// dy[i] where the limit behind the normalisation let x[i] through, else 0.
template <class T>
struct OpenGradient {
  ChannelSteps steps;
  Limit<double> limit;
  const T* dy;
  const T* x;
  ChannelNumbers numbers;
  T* to;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const double value = numbers.normalized(steps.channel_of(i), static_cast<double>(x[i]));
    to[i] = limit.is_closed(value) ? T(0) : dy[i];
  }
};

/// dbias[c] = sum dy, dweight[c] = sum dy (x - mean) rstd.
template <class T>
struct ChannelGradients {
  ChannelSteps steps;
  const T* dy;
  const T* x;
  const double* mean;
  const double* rstd;
  double* dweight;
  double* dbias;

  PLEAT_HOST_DEVICE void operator()(int64_t c) const {
    double sum = 0;
    double product = 0;
    for (int64_t n = 0; n < steps.images; ++n)
      for (int64_t p = 0; p < steps.pixels; ++p) {
        const int64_t i = steps.at(n, c, p);
        sum += static_cast<double>(dy[i]);
        product += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - mean[c]);
      }
    dbias[c] = sum;
    dweight[c] = product * rstd[c];
  }
};

/// dx[i] = weight rstd (dy[i] - (dbias + (x[i] - mean) rstd dweight) / values); without training only the
/// first term.
template <class T>
struct NormalizeBackward {
  ChannelSteps steps;
  bool training;
  const T* dy;
  const T* x;
  const double* mean;
  const double* rstd;
  const double* weight;
  const double* dweight;
  const double* dbias;
  T* dx;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = steps.channel_of(i);
    double gradient = static_cast<double>(dy[i]);
    if (training)
      gradient -= (dbias[c] + (static_cast<double>(x[i]) - mean[c]) * rstd[c] * dweight[c]) /
                  static_cast<double>(steps.values());
    dx[i] = static_cast<T>(weight[c] * rstd[c] * gradient);
  }
};

ChannelSteps steps_of(const ChannelView& view) {
  return {view.images, view.channels, view.pixels, view.channels_last};
}

/// One value or one channel a thread, in float64: what every other implementation is compared with.
class Reference final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "reference"; }
  bool runs_on(Device) const override { return true; }
  std::string unsupported(const BatchNormProblem&, BatchNormPass) const override { return {}; }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    // float64 holds every other floating type exactly: one instance of the functors serves them all.
    const ChannelSteps steps = steps_of(problem.view);
    const Tensor x = cast(t.x, float64);
    const Tensor residual = t.residual.defined() ? cast(t.residual, float64) : Tensor();
    const Tensor y = empty_like(x);
    if (problem.training)
      for_each_index("batch_norm", problem.device, steps.channels,
                     ChannelStatistics<double>{steps, x.data<double>(), problem.eps, t.mean.data<double>(),
                                               t.variance.data<double>(), t.rstd.data<double>()});
    const Tensor weight = per_channel_on(t.weight, problem.view.channels, 1, problem.device);
    const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
    for_each_index(
        "batch_norm", problem.device, x.numel(),
        Normalize<double>{steps, problem.bounds, x.data<double>(),
                          ChannelNumbers{t.mean.data<double>(), t.rstd.data<double>(), weight.data<double>(),
                                         bias.data<double>()},
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
    if (problem.bounds.any()) {
      const Tensor bias = per_channel_on(t.bias, problem.view.channels, 0, problem.device);
      const Tensor open = empty_like(dy);
      for_each_index(
          "batch_norm", problem.device, x.numel(),
          OpenGradient<double>{steps, problem.bounds, dy.data<double>(), x.data<double>(),
                               ChannelNumbers{mean, rstd, weight.data<double>(), bias.data<double>()},
                               open.data<double>()});
      dy = open;
    }
    const Tensor exact_dweight = empty({problem.view.channels}, {.dtype = float64, .device = problem.device});
    const Tensor exact_dbias = empty_like(exact_dweight);
    double* dweight = exact_dweight.data<double>();
    double* dbias = exact_dbias.data<double>();
    for_each_index(
        "batch_norm", problem.device, steps.channels,
        ChannelGradients<double>{steps, dy.data<double>(), x.data<double>(), mean, rstd, dweight, dbias});
    copy_into(t.dweight, exact_dweight);
    copy_into(t.dbias, exact_dbias);
    if (!t.dx.defined()) return;
    const Tensor dx = empty_like(x);
    for_each_index(
        "batch_norm", problem.device, x.numel(),
        NormalizeBackward<double>{steps, problem.training, dy.data<double>(), x.data<double>(), mean, rstd,
                                  weight.data<double>(), dweight, dbias, dx.data<double>()});
    copy_into(t.dx, dx);
  }
};

}  // namespace

const BatchNormImplementation* reference_batch_norm() {
  static const auto* const implementation = new Reference;
  return implementation;
}

}  // namespace pleat::ops
