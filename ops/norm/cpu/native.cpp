#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
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

/// Calls `run(Type<S>{})` with the type of elements.
template <class Run>
void by_type(DType dtype, const Run& run) {
  dispatch(dtype, [&]<class S>(Type<S> type) {
    if constexpr (!std::is_integral_v<S>) run(type);
  });
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
    by_type(problem.dtype, [&]<class S>(Type<S>) { run_forward<S>(problem, t); });
  }

  std::shared_ptr<const Normalization> normalization(const BatchNormProblem& problem,
                                                     const BatchNormForward& t) const override {
    if (!problem.view.channels_last || problem.residual || is_half(problem.dtype)) return nullptr;
    std::shared_ptr<const Normalization> by;
    by_type(problem.dtype, [&]<class S>(Type<S>) {
      by = std::make_shared<Normalization>(normalizing<S>(problem, t), problem.bounds);
    });
    return by;
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    by_type(problem.dtype, [&]<class S>(Type<S>) { run_backward<S>(problem, t); });
  }

 private:
  template <class S>
  static void run_forward(const BatchNormProblem& problem, const BatchNormForward& t) {
    channel_affine(problem.view, false, t.x.data<S>(), normalizing<S>(problem, t), problem.bounds,
                   t.y.data<S>(), t.residual.defined() ? t.residual.data<S>() : nullptr);
  }

  /// The statistics, and what normalises x by them.
  template <class S>
  static Affine<Computed<S>> normalizing(const BatchNormProblem& problem, const BatchNormForward& t) {
    double* mean = t.mean.data<double>();
    double* variance = t.variance.data<double>();
    double* rstd = t.rstd.data<double>();
    const auto channels = static_cast<std::size_t>(problem.view.channels);
    if (problem.training) {
      const Moments moments =
          t.moments != nullptr ? *t.moments : channel_moments(problem.view, false, t.x.data<S>());
      const auto n = static_cast<double>(problem.view.images * problem.view.pixels);
      for (std::size_t c = 0; c < channels; ++c) {
        mean[c] = moments.mean[c];
        variance[c] = moments.m2[c] / n;
        rstd[c] = 1 / std::sqrt(variance[c] + problem.eps);
      }
      if (t.running.defined()) update_running(t.running, t.mean, t.variance);
    }
    return affine<Computed<S>>(problem, t.mean, t.rstd, t.weight, t.bias);
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
  template <class S>
  static void run_backward(const BatchNormProblem& problem, const BatchNormBackward& t) {
    using T = Computed<S>;
    const auto channels = static_cast<std::size_t>(problem.view.channels);
    const double* mean = t.mean.data<double>();
    const double* rstd = t.rstd.data<double>();
    InputGradient<T> numbers(channels);
    for (std::size_t c = 0; c < channels; ++c) numbers.shift[c] = static_cast<T>(mean[c]);
    const S* dy = t.dy.data<S>();
    const S* x = t.x.data<S>();
    // Where a limit behind was open follows from x, behind an addition from y.
    std::optional<Opening<S>> opening;
    if (t.y.defined())
      opening = Opening<S>{problem.bounds, t.more_dy.defined() ? t.more_dy.data<S>() : nullptr, t.y.data<S>(),
                           t.dresidual.data<S>()};
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
    if (t.dx.defined()) channel_input_gradient(problem.view, false, dy, x, numbers, t.dx.data<S>(), by_x);
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
