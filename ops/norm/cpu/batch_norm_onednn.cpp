#include <tuple>
#include <unordered_map>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/limit.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/norm/running_statistics.h"
#include "pleat/ops/onednn/onednn.h"

/// oneDNN's batch normalisation: a yardstick, and a choice by name or by timing. What Pleat computes in the
/// same pass (the residual, bounds, the running statistics) are passes of their own here.

namespace pleat::ops {
namespace {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

constexpr const char* op = "batch_norm";

memory::desc desc_of(const ChannelView& view) {
  const memory::dims dims{view.images, view.channels, view.pixels, 1};
  const int64_t pixel = view.channels_last ? view.channels : 1;
  const int64_t channel = view.channels_last ? 1 : view.pixels;
  return {dims, memory::data_type::f32, {view.channels * view.pixels, channel, pixel, pixel}};
}

/// A number for each channel.
memory numbers(const Tensor& t) {
  return onednn::memory({{t.numel()}, memory::data_type::f32, memory::format_tag::x}, t);
}

batch_normalization_forward::primitive_desc forward_of(const memory::desc& x, prop_kind kind, double eps,
                                                       normalization_flags flags) {
#if DNNL_VERSION_MAJOR >= 3
  return onednn::describe<batch_normalization_forward>(
      std::tuple(kind, x, x, static_cast<float>(eps), flags));
#else
  return onednn::describe<batch_normalization_forward>(std::tuple(kind, x, static_cast<float>(eps), flags));
#endif
}

batch_normalization_backward::primitive_desc backward_of(const memory::desc& x, double eps,
                                                         normalization_flags flags) {
  const auto forward = forward_of(x, prop_kind::forward_training, eps, flags);
#if DNNL_VERSION_MAJOR >= 3
  const std::tuple arguments(prop_kind::backward, x, x, x, static_cast<float>(eps), flags);
#else
  const std::tuple arguments(prop_kind::backward, x, x, static_cast<float>(eps), flags);
#endif
  return onednn::describe<batch_normalization_backward>(arguments, forward);
}

/// What oneDNN is given for a problem.
class Call {
 public:
  explicit Call(const BatchNormProblem& problem) : problem_(problem), x_(desc_of(problem.view)) {}

  memory elements(const Tensor& t) const { return onednn::memory(x_, t); }
  Tensor number(const Tensor& t, double otherwise) const {
    return t.defined() ? to_format(cast(t, float32), MemoryFormat::contiguous)
                       : full({problem_.view.channels}, otherwise, options());
  }
  Tensor new_number() const { return empty({problem_.view.channels}, options()); }
  /// The biased variance that `rstd` was made of.
  Tensor variance_of(const Tensor& rstd) const {
    const Tensor variance = empty_like(rstd);
    variance_from_reciprocal(rstd, problem_.eps, variance);
    return cast(variance, float32);
  }

  /// y from statistics that are given, or in training written. `t` has x, weight and bias.
  template <class Tensors>
  void forward(bool training, const Tensors& t, const Tensor& mean, const Tensor& variance,
               const Tensor& y) const {
    auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (!training) flags |= normalization_flags::use_global_stats;
    const auto kind = training ? prop_kind::forward_training : prop_kind::forward_inference;
    const Tensor weight = number(t.weight, 1), bias = number(t.bias, 0);
    onednn::call(op, [&] {
      onednn::execute<batch_normalization_forward>(forward_of(x_, kind, problem_.eps, flags),
                                                   {{DNNL_ARG_SRC, elements(t.x)},
                                                    {DNNL_ARG_MEAN, numbers(mean)},
                                                    {DNNL_ARG_VARIANCE, numbers(variance)},
                                                    {DNNL_ARG_SCALE, numbers(weight)},
                                                    {DNNL_ARG_SHIFT, numbers(bias)},
                                                    {DNNL_ARG_DST, elements(y)}});
    });
  }

  void backward(const BatchNormBackward& t, const Tensor& dy, const Tensor& mean, const Tensor& variance,
                const Tensor& dx, const Tensor& dweight, const Tensor& dbias) const {
    auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (!problem_.training) flags |= normalization_flags::use_global_stats;
    const Tensor weight = number(t.weight, 1), bias = number(t.bias, 0);
    onednn::call(op, [&] {
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, elements(t.x)},           {DNNL_ARG_DIFF_DST, elements(dy)},
          {DNNL_ARG_MEAN, numbers(mean)},          {DNNL_ARG_VARIANCE, numbers(variance)},
          {DNNL_ARG_SCALE, numbers(weight)},       {DNNL_ARG_DIFF_SRC, elements(dx)},
          {DNNL_ARG_DIFF_SCALE, numbers(dweight)}, {DNNL_ARG_DIFF_SHIFT, numbers(dbias)}};
      // 2.x does not compute without it, 3.x not with it.
      if (DNNL_VERSION_MAJOR < 3) arguments.emplace(DNNL_ARG_SHIFT, numbers(bias));
      onednn::execute<batch_normalization_backward>(backward_of(x_, problem_.eps, flags), arguments);
    });
  }

 private:
  static TensorOptions options() { return {.dtype = float32, .device = Device()}; }

  const BatchNormProblem& problem_;
  memory::desc x_;
};

class OnednnBatchNorm final : public BatchNormImplementation {
 public:
  std::string_view name() const override { return "onednn"; }
  bool runs_on(Device device) const override { return device.is_cpu(); }
  std::string unsupported(const BatchNormProblem& problem, BatchNormPass) const override {
    if (!problem.device.is_cpu()) return "it runs on the CPU";
    return problem.dtype == float32 ? "" : "it computes in float32";
  }

  void forward(const BatchNormProblem& problem, const BatchNormForward& t) const override {
    const Call call(problem);
    if (problem.training) {
      const Tensor mean = call.new_number(), variance = call.new_number();
      call.forward(true, t, mean, variance, t.y);
      copy_into(t.mean, mean);
      copy_into(t.variance, variance);
      reciprocal_deviation(t.variance, problem.eps, t.rstd);
    } else {
      call.forward(false, t, call.number(t.mean, 0), call.number(t.variance, 1), t.y);
    }
    if (t.residual.defined()) add_into(t.y, t.y, t.residual);
    if (problem.bounds.any()) limit_into(t.y, t.y, problem.bounds);
    if (problem.training && t.running.defined()) update_running(t.running, t.mean, t.variance);
  }

  void backward(const BatchNormProblem& problem, const BatchNormBackward& t) const override {
    const Call call(problem);
    const Tensor mean = call.number(t.mean, 0), variance = call.variance_of(t.rstd);
    Tensor dy = t.dy;
    if (problem.bounds.any()) {
      const Tensor y = empty_like(t.x);
      call.forward(false, t, mean, variance, y);
      dy = limit_backward(t.dy, y, problem.bounds);
    }
    const Tensor dweight = call.new_number(), dbias = call.new_number();
    call.backward(t, dy, mean, variance, t.dx.defined() ? t.dx : empty_like(t.x), dweight, dbias);
    copy_into(t.dweight, dweight);
    copy_into(t.dbias, dbias);
  }
};

}  // namespace

const BatchNormImplementation* onednn_batch_norm() {
  static const auto* const implementation = new OnednnBatchNorm;
  return implementation;
}

}  // namespace pleat::ops
