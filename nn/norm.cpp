#include "pleat/nn/norm.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/option_checks.h"
#include "pleat/nn/options_text.h"
#include "pleat/nn/record_forward.h"
#include "pleat/ops/norm/norm.h"
#include "pleat/ops/spatial/channels_hint.h"

namespace pleat::nn {

template <class Options>
RunningNorm::RunningNorm(const char* name, int dims, const Options& o) : name_(name), dims_(dims) {
  const int64_t features = o.num_features;
  check_at_least(type_name(), "num_features", features, 1);
  check_positive(type_name(), "eps", o.eps);
  if (o.affine) {
    weight = parameter(ones({features}));
    bias = parameter(zeros({features}));
  }
  if (o.track_running_stats) {
    running_mean = zeros({features});
    running_var = ones({features});
    num_batches_tracked = scalar(0, int64);
  }
}

void RunningNorm::members(Members& m) {
  WeightAndBias::members(m);
  m.buffer("running_mean", running_mean);
  m.buffer("running_var", running_var);
  m.buffer("num_batches_tracked", num_batches_tracked);
}

BatchNormModule::BatchNormModule(int dims, BatchNormModuleOptions o)
    : RunningNorm("BatchNorm", dims, o), options(std::move(o)) {
  if (options.momentum) check_share(type_name(), "momentum", *options.momentum);
  check<ValueError>(options.bounds.min <= options.bounds.max, "{}: bounds must have min <= max, got {}",
                    type_name(), to_string(options.bounds));
}

Tensor BatchNormModule::forward(const Tensor& x) { return call(x, call_options({}, {})); }

Tensor BatchNormModule::forward(const Tensor& x, const Tensor& residual, const Bounds& bounds) {
  const RecordForward range(*this, x, residual);
  return range.run([&] { return call(x, call_options(residual, bounds)); });
}

Tensor BatchNormModule::call(const Tensor& x, const BatchNormOptions& o) const {
  check_rank(x);
  if (function) return function(x, weight, bias, running_mean, running_var, o);
  return batch_norm(x, weight, bias, running_mean, running_var, o);
}

BatchNormOperands BatchNormModule::operands(const Tensor& residual, const Bounds& bounds) const {
  if (function)
    fail<Error>(
        "{}: it computes a function of its own, as dist::convert_sync_batch_norm sets it, which no "
        "function of these operands does; call the module",
        type_name());
  return {weight, bias, running_mean, running_var, call_options(residual, bounds)};
}

BatchNormOptions BatchNormModule::call_options(const Tensor& residual, const Bounds& bounds) const {
  return {.training = training() || !running_mean.defined(),
          .momentum = options.momentum,
          .eps = options.eps,
          .residual = residual,
          .bounds = bounds.any() ? bounds : options.bounds,
          .num_batches_tracked = num_batches_tracked,
          .implementation = options.implementation};
}

void BatchNormModule::check_rank(const Tensor& x) const {
  check<ShapeError>(
      x.rank() == dims_ + 2 || (dims_ == 1 && x.rank() == 2), "{}: needs [N, C{}], got {}{}",
      [&] { return type_name(); }, dims_ == 1 ? "] or [N, C, L" : ", spatial...", x,
      dims_ > 1 && x.rank() == dims_ + 1 ? "; unsqueeze(x, 0) makes a batch of one sample" : "");
}

std::string BatchNormModule::options_text() const {
  const auto& o = options;
  return OptionsText()(o.num_features)("eps", o.eps, 1e-5)("momentum", o.momentum, 0.1)(
      "affine", o.affine, true)("track_running_stats", o.track_running_stats, true)(
      "bounds", o.bounds, Bounds())("implementation", o.implementation, "");
}

LayerNorm::LayerNorm(LayerNormModuleOptions o) : WeightAndBias(std::move(o)) {
  const Sizes& shape = options.normalized_shape;
  check<ValueError>(!shape.empty() && std::ranges::all_of(shape, [](int64_t size) { return size >= 1; }),
                    "LayerNorm: normalized_shape needs sizes of at least 1, got {}", shape);
  check_positive("LayerNorm", "eps", options.eps);
  if (!options.elementwise_affine) return;
  weight = parameter(ones(shape));
  if (options.bias) bias = parameter(zeros(shape));
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, weight, bias,
                    {.normalized_shape = options.normalized_shape.get(), .eps = options.eps});
}

std::string LayerNorm::options_text() const {
  const auto& o = options;
  return OptionsText()(o.normalized_shape)("eps", o.eps, 1e-5)(
      "elementwise_affine", o.elementwise_affine, true)("bias", o.bias || !o.elementwise_affine, true);
}

RMSNorm::RMSNorm(RMSNormModuleOptions o) : Layer(std::move(o)) {
  const Sizes& shape = options.normalized_shape;
  check<ValueError>(!shape.empty() && std::ranges::all_of(shape, [](int64_t size) { return size >= 1; }),
                    "RMSNorm: normalized_shape needs sizes of at least 1, got {}", shape);
  if (options.eps) check_positive("RMSNorm", "eps", *options.eps);
  if (options.elementwise_affine) weight = parameter(ones(shape));
}

Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, weight, {.normalized_shape = options.normalized_shape.get(), .eps = options.eps});
}

std::string RMSNorm::options_text() const {
  return OptionsText()(options.normalized_shape)("eps", options.eps, std::optional<double>())(
      "elementwise_affine", options.elementwise_affine, true);
}

void detail::check_options(LayerName layer, const LocalResponseNormOptions& o) {
  check_at_least(layer.text, "size", o.size, 1);
  check_finite(layer.text, "alpha", o.alpha);
  check_finite(layer.text, "beta", o.beta);
  check_finite(layer.text, "k", o.k);
}
std::string detail::text_of_options(LayerName, const LocalResponseNormOptions& o) {
  return OptionsText()(o.size)("alpha", o.alpha)("beta", o.beta)("k", o.k);
}

GroupNorm::GroupNorm(GroupNormModuleOptions o) : WeightAndBias(std::move(o)) {
  const int64_t groups = options.num_groups;
  const int64_t channels = options.num_channels;
  check<ValueError>(groups >= 1 && channels >= 1 && channels % groups == 0,
                    "GroupNorm: num_groups must be at least 1 and divide num_channels, got {} and {}", groups,
                    channels);
  check_positive("GroupNorm", "eps", options.eps);
  if (!options.affine) return;
  weight = parameter(ones({channels}));
  bias = parameter(zeros({channels}));
}

Tensor GroupNorm::forward(const Tensor& x) {
  if (x.rank() < 2 || x.size(1) != options.num_channels)
    fail<ShapeError>("GroupNorm: needs [N, {}, ...], got {}{}", options.num_channels.get(), x,
                     ops::channels_last_hint(x.shape(), options.num_channels));
  return group_norm(x, weight, bias, {.num_groups = options.num_groups, .eps = options.eps});
}

std::string GroupNorm::options_text() const {
  return OptionsText()(options.num_groups)(options.num_channels)("eps", options.eps, 1e-5)(
      "affine", options.affine, true);
}

InstanceNormModule::InstanceNormModule(int dims, InstanceNormModuleOptions o)
    : RunningNorm("InstanceNorm", dims, o), options(std::move(o)) {
  check_share(type_name(), "momentum", options.momentum);
}

Tensor InstanceNormModule::forward(const Tensor& x) {
  if (x.rank() != dims_ + 2 || x.size(1) != options.num_features)
    fail<ShapeError>("{}: needs [N, {}] and {} spatial dimensions, got {}{}", type_name(),
                     options.num_features.get(), dims_, x,
                     ops::channels_last_hint(x.shape(), options.num_features));
  return instance_norm(x, weight, bias, running_mean, running_var,
                       {.use_input_stats = training() || !options.track_running_stats,
                        .momentum = options.momentum,
                        .eps = options.eps,
                        .num_batches_tracked = num_batches_tracked});
}

std::string InstanceNormModule::options_text() const {
  const auto& o = options;
  return OptionsText()(o.num_features)("eps", o.eps, 1e-5)("momentum", o.momentum, 0.1)(
      "affine", o.affine, false)("track_running_stats", o.track_running_stats, false);
}

}  // namespace pleat::nn
