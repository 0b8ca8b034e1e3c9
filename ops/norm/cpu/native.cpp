#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/cpu/channel_kernels.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/per_channel.h"
#include "pleat/ops/norm/running_statistics.h"

namespace pleat::ops {
namespace {

/// Calls `run(Type<T>{}, tensors)` with T = float, or double for float64; tensors of half types are float32
/// meanwhile.
template <class Run>
void by_float_type(const BatchNormProblem& problem, const BatchNormForward& t, const Run& run) {
  if (problem.dtype == float64) return run(Type<double>{}, t);
  if (!is_half(problem.dtype)) return run(Type<float>{}, t);
  BatchNormForward wide = t;
  wide.x = cast(t.x, float32);
  if (t.residual.defined()) wide.residual = cast(t.residual, float32);
  wide.y = empty_like(wide.x);
  run(Type<float>{}, wide);
  copy_into(t.y, wide.y);
}

template <class Run>
void by_float_type(const BatchNormProblem& problem, const BatchNormBackward& t, const Run& run) {
  if (problem.dtype == float64) return run(Type<double>{}, t);
  if (!is_half(problem.dtype)) return run(Type<float>{}, t);
  BatchNormBackward wide = t;
  wide.x = cast(t.x, float32);
  wide.dy = cast(t.dy, float32);
  if (t.more_dy.defined()) wide.more_dy = cast(t.more_dy, float32);
  if (t.y.defined()) wide.y = cast(t.y, float32);
  for (Tensor* result : {&wide.dresidual, &wide.dx})
    if (result->defined()) *result = empty_like(wide.x);
  run(Type<float>{}, wide);
  if (t.dresidual.defined()) copy_into(t.dresidual, wide.dresidual);
  if (t.dx.defined()) copy_into(t.dx, wide.dx);
}

/// Forward: one reading for the statistics, tile by tile, and one for the result. Backward: one reading of dy
/// and x for the two sums of each channel, and one for dx.
class Native final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "native"; }
  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const BatchNormProblem& problem, BatchNormPass) const override {
    return problem.device.is_cpu() ? "" : "it runs on the CPU";
  }
  double cost(const BatchNormProblem&, BatchNormPass) const override { return 0; }
  bool opens_by_result() const override { return true; }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    by_float_type(problem, t,
                  [&]<class T>(Type<T>, const BatchNormForward& own) { run_forward<T>(problem, own); });
  }

  std::shared_ptr<const Normalization> normalization(const BatchNormProblem& problem,
                                                     const BatchNormForward& t) const override {
    if (!problem.view.channels_last || problem.residual || is_half(problem.dtype)) return nullptr;
    std::shared_ptr<const Normalization> by;
    by_float_type(problem, t, [&]<class T>(Type<T>, const BatchNormForward& own) {
      by = std::make_shared<Normalization>(normalizing<T>(problem, own), problem.bounds);
    });
    return by;
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    by_float_type(problem, t,
                  [&]<class T>(Type<T>, const BatchNormBackward& own) { run_backward<T>(problem, own); });
  }

 private:
  template <class T>
  static void run_forward(const BatchNormProblem& problem, const BatchNormForward& t) {
    channel_affine(problem.view, false, t.x.data<T>(), normalizing<T>(problem, t), problem.bounds,
                   t.y.data<T>(), t.residual.defined() ? t.residual.data<T>() : nullptr);
  }

  /// The statistics, and what normalises x by them.
  template <class T>
  static Affine<T> normalizing(const BatchNormProblem& problem, const BatchNormForward& t) {
    double* mean = t.mean.data<double>();
    double* variance = t.variance.data<double>();
    double* rstd = t.rstd.data<double>();
    const auto channels = static_cast<std::size_t>(problem.view.channels);
    if (problem.training) {
      const Moments moments =
          t.moments != nullptr ? *t.moments : channel_moments(problem.view, false, t.x.data<T>());
      const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
      for (std::size_t c = 0; c < channels; ++c) {
        mean[c] = moments.mean[c];
        variance[c] = moments.m2[c] / n;
        rstd[c] = 1 / std::sqrt(variance[c] + problem.eps);
      }
      if (t.running.defined()) update_running(t.running, t.mean, t.variance);
    }
    return affine<T>(problem, t.mean, t.rstd, t.weight, t.bias);
  }

  template <class T>
  static Affine<T> affine(const BatchNormProblem& problem, const Tensor& mean, const Tensor& rstd,
                          const Tensor& weight, const Tensor& bias) {
    const std::vector<double> factor = per_channel(weight, problem.view.channels, 1);
    const std::vector<double> offset = per_channel(bias, problem.view.channels, 0);
    Affine<T> numbers(factor.size());
    for (std::size_t c = 0; c < factor.size(); ++c) {
      const double exact = mean.data<double>()[c];
      const double scale = factor[c] * rstd.data<double>()[c];
      numbers.shift[c] = static_cast<T>(exact);
      numbers.scale[c] = static_cast<T>(scale);
      // The part of the mean that its rounding cuts off.
      numbers.bias[c] = static_cast<T>(offset[c] + (static_cast<double>(numbers.shift[c]) - exact) * scale);
    }
    return numbers;
  }

  /// With h = (x - mean) rstd and n values in a channel:
  ///   dbias = sum dy,  dweight = sum dy h,  dx = weight rstd (dy - (dbias + h dweight) / n)  in training.
  template <class T>
  static void run_backward(const BatchNormProblem& problem, const BatchNormBackward& t) {
    const auto channels = static_cast<std::size_t>(problem.view.channels);
    const double* mean = t.mean.data<double>();
    const double* rstd = t.rstd.data<double>();
    InputGradient<T> numbers(channels);
    for (std::size_t c = 0; c < channels; ++c) numbers.shift[c] = static_cast<T>(mean[c]);
    const T* dy = t.dy.data<T>();
    const T* x = t.x.data<T>();
    // Where a limit behind was open follows from x, behind an addition from y.
    std::optional<Opening<T>> opening;
    if (t.y.defined())
      opening = Opening<T>{problem.bounds, t.more_dy.defined() ? t.more_dy.data<T>() : nullptr, t.y.data<T>(),
                           t.dresidual.data<T>()};
    std::optional<LimitedAffine<T>> limited;
    if (problem.bounds.any() && !opening)
      limited = LimitedAffine<T>{affine<T>(problem, t.mean, t.rstd, t.weight, t.bias), problem.bounds};
    const LimitedAffine<T>* by_x = limited ? &*limited : nullptr;
    const GradientSums sums = t.sums != nullptr
                                  ? *t.sums
                                  : channel_gradient_sums(problem.view, false, dy, x, numbers.shift, by_x,
                                                          opening ? &*opening : nullptr);
    if (opening) dy = opening->open;
    const std::vector<double> weight = per_channel(t.weight, problem.view.channels, 1);
    const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
    const Tensor dbiases = empty({problem.view.channels}, {.dtype = float64, .device = Device()});
    const Tensor dweights = empty_like(dbiases);
    for (std::size_t c = 0; c < channels; ++c) {
      const double cut = static_cast<double>(numbers.shift[c]) - mean[c];
      const double dbias = sums.dy[c];
      const double dweight = (sums.dy_x[c] + cut * dbias) * rstd[c];
      dbiases.data<double>()[c] = dbias;
      dweights.data<double>()[c] = dweight;
      const double scale = weight[c] * rstd[c];
      numbers.scale[c] = static_cast<T>(scale);
      if (!problem.training) continue;
      const double slope = scale * rstd[c] * dweight / n;
      numbers.slope[c] = static_cast<T>(-slope);
      numbers.offset[c] = static_cast<T>(scale * dbias / n + slope * cut);
    }
    copy_into(t.dbias, dbiases);
    copy_into(t.dweight, dweights);
    if (t.dx.defined()) channel_input_gradient(problem.view, false, dy, x, numbers, t.dx.data<T>(), by_x);
  }
};

}  // namespace

Tensor normalized(const Normalization& by, const Tensor& x) {
  const RecordOp range("batch_norm", x);
  Tensor y = empty_like(x);
  const auto compute = [&]<class T>(Type<T>) {
    channel_affine(channel_view(x), false, x.data<T>(), by.numbers<T>(), by.bounds, y.data<T>());
  };
  if (x.dtype() == float64)
    compute(Type<double>{});
  else
    compute(Type<float>{});
  return y;
}

const BatchNormImplementation* native_batch_norm() {
  static const auto* const implementation = new Native;
  return implementation;
}

}  // namespace pleat::ops
