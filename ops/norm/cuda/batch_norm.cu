#include <cmath>

#include "pleat/core/tensor/create.h"
#include "pleat/ops/norm/cuda/norm_cuda.h"
#include "pleat/ops/norm/cuda/norm_functors.h"
#include "pleat/ops/norm/cuda/reduce_groups.h"
#include "pleat/ops/norm/implementation.h"

/// Batch normalisation on a GPU, in both memory formats and all floating types as they are stored. Forward:
/// one reading of x for the statistics, one for the result; backward: one reading of dy and x for the sums of
/// each channel, one for dx. A relu and its like cost no pass and no memory: backward works out from x where
/// they were open. After a residual it reads that from the result, and writes the residual's gradient while
/// it sums.

namespace pleat::ops {
namespace {

constexpr const char* op = "batch_norm";

/// The channels of a view as groups.
GroupLayout layout_of_channels(const ChannelView& view, std::size_t width) {
  return view.channels_last ? GroupLayout::down(1, view.images * view.pixels, view.channels, width)
                            : GroupLayout::along(view.channels, view.images, view.pixels, width);
}

/// Calls `f(width, across)`, both integral constants.
template <class S, class F>
void by_format(const ChannelView& view, std::initializer_list<const S*> data, const F& f) {
  if (view.channels_last)
    by_width<S, true>(view.channels, data, f);
  else
    by_width<S, false>(view.pixels, data, f);
}

/// dbias = sum dy, dweight = sum dy (x - mean) rstd, and for dx both of them times the weight.
template <class T>
struct FinishGradients {
  Statistics of;
  std::byte* dweight;
  std::byte* dbias;
  DType dtype;
  GradientState* sums;

  PLEAT_HOST_DEVICE void operator()(int64_t c, const GradientState& state) const {
    const double cut = static_cast<double>(static_cast<T>(of.mean[c])) - of.mean[c];
    const double product = (state.dy_x + cut * state.dy) * of.rstd[c];
    store_as<double>(dbias, c, dtype, state.dy);
    store_as<double>(dweight, c, dtype, product);
    sums[c] = {of.weight[c] * state.dy, of.weight[c] * product};
  }
};

Statistics statistics_of(const ChannelView& view, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, const Tensor& bias) {
  return {mean.data<double>(), rstd.data<double>(),        {weight, 1},
          {bias, 0},           FastDivider(view.channels), FastDivider(1)};
}

template <class T, class S>
void run_forward(const BatchNormProblem& problem, const BatchNormForward& t) {
  const ChannelView& view = problem.view;
  const S* const x = t.x.data<S>();
  S* const y = t.y.data<S>();
  const S* const residual = t.residual.defined() ? t.residual.data<S>() : nullptr;
  double* const mean = t.mean.data<double>();
  double* const rstd = t.rstd.data<double>();
  const bool updates = problem.training && t.running.defined();
  if (updates) t.running.begin_update();
  by_format<S>(view, {x, y, residual}, [&](auto width, auto across) {
    const GroupLayout layout = layout_of_channels(view, width);
    if (problem.training)
      reduce_groups<across>(
          op, problem.device, layout, 1, MomentSums<T, S, width>{x},
          FinishMoments{problem.eps, mean, t.variance.data<double>(), rstd, RunningChannels(t.running)});
    const Statistics of = statistics_of(view, t.mean, t.rstd, t.weight, t.bias);
    map_groups<across>(op, problem.device, layout,
                       ApplyAffine<T, S, width>{x, of, problem.bounds, y, residual});
  });
  if (updates) t.running.end_update();
}

template <class T, class S>
void run_backward(const BatchNormProblem& problem, const BatchNormBackward& t) {
  const ChannelView& view = problem.view;
  const S* const dy = t.dy.data<S>();
  const S* const x = t.x.data<S>();
  const S* const y = t.y.defined() ? t.y.data<S>() : nullptr;
  S* const open = t.y.defined() ? t.dresidual.data<S>() : nullptr;
  const S* const more = t.more_dy.defined() ? t.more_dy.data<S>() : nullptr;
  S* const dx = t.dx.defined() ? t.dx.data<S>() : nullptr;
  const Limit<T> limit(problem.bounds);
  const Tensor memory = empty({2 * view.channels}, {.dtype = float64, .device = problem.device});
  auto* const sums = reinterpret_cast<GradientState*>(memory.data<double>());
  const Statistics of = statistics_of(view, t.mean, t.rstd, t.weight, t.bias);
  by_format<S>(view, {dy, x, y, open, more, dx}, [&](auto width, auto across) {
    const GroupLayout layout = layout_of_channels(view, width);
    reduce_groups<across>(op, problem.device, layout, 1,
                          ReduceGradients<T, S, width>{dy, x, of, limit, y, open, more},
                          FinishGradients<T>{of, t.dweight.raw(), t.dbias.raw(), t.dweight.dtype(), sums});
    if (dx == nullptr) return;
    const auto values = static_cast<double>(view.images * view.pixels);
    map_groups<across>(
        op, problem.device, layout,
        ApplyGradient<T, S, width>{open != nullptr ? open : dy, x, of, problem.training ? sums : nullptr,
                                   values, y == nullptr ? limit : Limit<T>(), dx});
  });
}

template <class T, class S>
void run_open_gradient(const BatchNormProblem& problem, const BatchNormBackward& t, const Tensor& result) {
  const ChannelView& view = problem.view;
  const S* const dy = t.dy.data<S>();
  const S* const x = t.x.data<S>();
  S* const to = result.data<S>();
  const Statistics of = statistics_of(view, t.mean, t.rstd, t.weight, t.bias);
  by_format<S>(view, {dy, x, to}, [&](auto width, auto across) {
    map_groups<across>(op, problem.device, layout_of_channels(view, width),
                       ApplyOpen<T, S, width>{dy, x, of, problem.bounds, to});
  });
}

class NativeCuda final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "native"; }
  bool runs_on(Device device) const override { return device.is_cuda(); }
  std::string unsupported(const BatchNormProblem& problem, BatchNormPass) const override {
    return problem.device.is_cuda() ? "" : "it runs on CUDA";
  }
  double cost(const BatchNormProblem&, BatchNormPass) const override { return 0; }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    by_stored_type(problem.dtype, [&]<class T, class S>(Type<T>, Type<S>) { run_forward<T, S>(problem, t); });
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    by_stored_type(problem.dtype,
                   [&]<class T, class S>(Type<T>, Type<S>) { run_backward<T, S>(problem, t); });
  }

  bool opens_by_result() const override { return true; }
};

}  // namespace

Tensor open_gradient(const BatchNormProblem& problem, const BatchNormBackward& tensors) {
  const Tensor result = empty_like(tensors.x);
  by_stored_type(problem.dtype, [&]<class T, class S>(Type<T>, Type<S>) {
    run_open_gradient<T, S>(problem, tensors, result);
  });
  return result;
}

const BatchNormImplementation* native_batch_norm_cuda() {
  static const auto* const implementation = new NativeCuda;
  return implementation;
}

}  // namespace pleat::ops
