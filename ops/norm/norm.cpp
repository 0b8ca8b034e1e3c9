#include "pleat/ops/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/norm/fused_norm.h"
#include "pleat/ops/norm/problem.h"
#include "pleat/ops/norm/rms_norm.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/spatial/limit.h"

namespace pleat {
namespace {

/// [C] seen as [1, C, 1...], of `rank` dimensions.
Tensor as_channels(const Tensor& t, int64_t rank) {
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape[1] = t.numel();
  return reshape(t, shape);
}

/// All dimensions but the channels'.
Dims all_but_channels(const Tensor& x) {
  std::vector<int64_t> others{0};
  for (int64_t d = 2; d < x.rank(); ++d) others.push_back(d);
  return others;
}

/// The fused gradients are no functions on the tape. When a graph of gradients is recorded, these take their
/// place, written with differentiable functions: mean and standard deviation depend on x again.
struct Normal {
  Tensor h;     ///< (x - mean) / sqrt(variance + eps)
  Tensor rstd;  ///< 1 / sqrt(variance + eps)
};

Normal normalized(const Tensor& x, const Dims& dims, double eps) {
  const Tensor centred = x - mean(x, dims, true);
  const Tensor rstd = rsqrt(mean(centred * centred, dims, true) + eps);
  return {centred * rstd, rstd};
}

/// The gradient of x from that of h, g.
Tensor normalized_gradient(const Tensor& g, const Normal& of, const Dims& dims) {
  return of.rstd * (g - mean(g, dims, true) - of.h * mean(g * of.h, dims, true));
}

}  // namespace

Grads batch_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Tensor& saved_mean, const Tensor& saved_rstd, const Tensor& y,
                           const BatchNormOptions& options, const Needs& needs) {
  const int64_t rank = x.rank();
  const Dims others = all_but_channels(x);
  const DType compute = compute_dtype(x.dtype());
  Normal normal;
  if (options.training) {
    normal = normalized(x.to(compute), others, options.eps);
  } else {
    normal.rstd = as_channels(saved_rstd.to(compute), rank);
    normal.h = (x.to(compute) - as_channels(saved_mean.to(compute), rank)) * normal.rstd;
  }
  const auto opened = [limit = ops::Limit<double>(options.bounds)](const Tensor& value, const Tensor& of) {
    return where(value <= limit.min, 0, where(value >= limit.max, 0, of));
  };
  const Tensor open = y.defined() ? opened(y.detach(), dy) : dy;
  Tensor g = open.to(compute);
  if (options.bounds.any() && !y.defined()) {
    Tensor affine = normal.h.detach();
    if (weight.defined()) affine = affine * as_channels(weight.to(compute).detach(), rank);
    if (bias.defined()) affine = affine + as_channels(bias.to(compute).detach(), rank);
    g = opened(affine, g);
  }
  Grads grads(4);
  grads[3] = open;
  if (needs[0]) {
    const Tensor scaled = weight.defined() ? g * as_channels(weight.to(compute), rank) : g;
    grads[0] = options.training ? normalized_gradient(scaled, normal, others) : scaled * normal.rstd;
  }
  if (needs[1]) grads[1] = sum(g * normal.h, others);
  if (needs[2]) grads[2] = sum(g, others);
  return grads;
}

namespace {

Grads group_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight,
                           const GroupNormOptions& options, const Needs& needs) {
  const DType compute = compute_dtype(x.dtype());
  const Shape grouped{x.size(0), options.num_groups,
                      x.numel() / std::max<int64_t>(1, x.size(0) * options.num_groups)};
  const Tensor g = dy.to(compute);
  const Normal normal = normalized(reshape(x.to(compute), grouped), -1, options.eps);
  Grads grads(3);
  if (needs[0]) {
    const Tensor scaled = weight.defined() ? g * as_channels(weight.to(compute), x.rank()) : g;
    grads[0] = reshape(normalized_gradient(reshape(scaled, grouped), normal, -1), x.shape());
  }
  if (needs[1]) grads[1] = sum(g * reshape(normal.h, x.shape()), all_but_channels(x));
  if (needs[2]) grads[2] = sum(g, all_but_channels(x));
  return grads;
}

/// On the tape: a result of x by the mean and rstd that it was normalised with.
Tensor record_batch_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const ops::BatchNormResult& result, const BatchNormOptions& options) {
  const Tensor& residual = options.residual;
  if (!autograd::any_matters({x, weight, bias, residual})) return result.y;
  BatchNormOptions own = options;  // without tensors, which would be kept
  own.residual = own.num_batches_tracked = Tensor();
  own.bounds = ops::rounded(options.bounds, x.dtype());
  // After a residual the result says where the bounds were open; else x does, which is kept anyway.
  const bool by_result = options.bounds.any() && residual.defined();
  const bool by_input = options.bounds.any() && !residual.defined();
  const auto gradients = [op, x = saved(x), weight = saved(weight), bias = saved(by_input ? bias : Tensor()),
                          mean = saved(result.mean), rstd = saved(result.rstd),
                          y = saved(by_result ? result.y : Tensor()),
                          options = own](const Grads& dys, const Needs& needs) -> Grads {
    const Tensor& dy = dys[0];
    if (grad_enabled()) return batch_norm_gradients(dy, *x, *weight, *bias, *mean, *rstd, *y, options, needs);
    const Tensor open_in = *y;
    const Tensor more = dys.size() > 1 ? dys[1] : Tensor();
    const ops::BatchNormGrads grads =
        ops::batch_norm_backward(dy, *x, *weight, *bias, *mean, *rstd, options, needs[0], op, open_in, more);
    return {grads.x, grads.weight, grads.bias, open_in.defined() ? grads.residual : dy};
  };
  const Tensor recorded = record(op, result.y, {Derivative{{x, weight, bias, residual}, gradients}});
  // What arrives at a result from two sides is added up in the pass that reads it anyway.
  if (by_result && !recorded.is_leaf()) recorded.impl().slot->node->takes_what_arrives = true;
  return recorded;
}

/// With `pending` the result may stay undefined, and the norm pending instead.
Tensor batch_norm(const char* op, const Tensor& x, const BatchNormOperands& norm,
                  const ops::Moments* moments = nullptr,
                  std::shared_ptr<const PendingNorm>* pending = nullptr) {
  const auto& [weight, bias, running_mean, running_var, options] = norm;
  const Call call(op, {x, weight, bias, running_mean, running_var, options.residual},
                  {{"training", Flag(options.training)},
                   {"eps", options.eps},
                   {"min", options.bounds.min},
                   {"max", options.bounds.max}});
  std::shared_ptr<const ops::Normalization> by;
  const ops::BatchNormResult result = ops::batch_norm_forward(
      x, weight, bias, running_mean, running_var, options, op, moments, pending != nullptr ? &by : nullptr);
  if (by == nullptr) return call.gives(record_batch_norm(op, x, weight, bias, result, options));
  BatchNormOptions own = options;
  own.num_batches_tracked = Tensor();
  own.bounds = ops::rounded(options.bounds, x.dtype());
  *pending = std::make_shared<PendingNorm>(PendingNorm{weight, bias, result.mean, result.rstd, own, by});
  return {};
}

Tensor record_group_norm(const char* op, const ops::GroupNormResult& result, const Tensor& x,
                         const Tensor& weight, const Tensor& bias, const GroupNormOptions& options) {
  return record(op, result.y, {x, weight, bias},
                [op, x = saved(x), weight = saved(weight), mean = saved(result.mean),
                 rstd = saved(result.rstd), options](const Tensor& dy, const Needs& needs) -> Grads {
                  if (grad_enabled()) return group_norm_gradients(dy, *x, *weight, options, needs);
                  const ops::GroupNormGrads grads = ops::group_norm_backward(
                      dy, *x, *weight, *mean, *rstd, options, needs[0], needs[1] || needs[2], op);
                  return {grads.x, grads.weight, grads.bias};
                });
}

/// Of layer_norm and rms_norm.
void check_rows(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                const Shape& normalized) {
  check<ShapeError>(!normalized.empty() && normalized.size() <= x.shape().size() &&
                        std::equal(normalized.rbegin(), normalized.rend(), x.shape().rbegin()),
                    "{}: input must end in the dimensions {}, got {}; normalized_shape is that of "
                    "the last dimensions",
                    op, normalized, x);
  check<ShapeError>(count(normalized) > 0, "{}: nothing to normalise over in {}", op, normalized);
  check<DTypeError>(is_floating(x.dtype()), "{}: input must be floating, got {}; convert it with to(float32)",
                    op, x);
  for (const auto& [what, t] : {std::pair{"weight", weight}, {"bias", bias}}) {
    if (!t.defined()) continue;
    check<ShapeError>(t.shape() == normalized, "{}: {} must be {}, got {}", op, what, normalized, t);
    check<DTypeError>(t.dtype() == x.dtype() || (is_half(x.dtype()) && t.dtype() == float32),
                      "{}: {} must be {}{}, got {}; the input is {}: convert one, for instance with x.to({})",
                      op, what, x.dtype(), is_half(x.dtype()) ? " or float32" : "", t, x.dtype(), t.dtype());
    check<DeviceError>(t.device() == x.device(), "{}: {} must be on {} like the input, got {}", op, what,
                       x.device(), t);
  }
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options) {
  return batch_norm("batch_norm", x, {weight, bias, running_mean, running_var, options});
}

FusedTensor fused_norm(const FusedTensor& x, const BatchNormOperands& norm, bool before_conv) {
  FusedTensor y = x;
  // Those who watch are told of a batch norm's result, and Autocast casts it for the convolution.
  const bool may_stay = before_conv && detail::call_observer == nullptr && !autocast_dtype();
  const Tensor result = batch_norm("batch_norm", x.x, norm, x.moments.get(), may_stay ? &y.norm : nullptr);
  return result.defined() ? FusedTensor{result} : y;
}

Tensor value(const FusedTensor& x) {
  if (x.norm == nullptr) return x.x;
  const auto& [weight, bias, mean, rstd, options, by] = *x.norm;
  const RecordOp range("batch_norm", x.x);
  return record_batch_norm("batch_norm", x.x, weight, bias, {ops::normalized(*by, x.x), mean, rstd}, options);
}

Tensor group_norm(const Tensor& input, const Tensor& factors, const Tensor& shifts,
                  const GroupNormOptions& options) {
  const Call call("group_norm", {input, factors, shifts},
                  {{"num_groups", options.num_groups}, {"eps", options.eps}});
  const Tensor x = autocast_to_float32(input);
  const Tensor weight = autocast_to_float32(factors);
  const Tensor bias = autocast_to_float32(shifts);
  return call.gives(record_group_norm("group_norm", ops::group_norm_forward(x, weight, bias, options), x,
                                      weight, bias, options));
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, const InstanceNormOptions& options) {
  check<ValueError>(options.use_input_stats || (running_mean.defined() && running_var.defined()),
                    "instance_norm: without use_input_stats it needs running statistics to normalise with");
  if (!options.use_input_stats)
    return batch_norm(
        "instance_norm", x,
        {weight, bias, running_mean, running_var, {.momentum = options.momentum, .eps = options.eps}});
  const Call call("instance_norm", {x, weight, bias}, {{"eps", options.eps}});
  const ops::GroupNormResult result =
      ops::instance_norm_forward(x, weight, bias, running_mean, running_var, options);
  return call.gives(record_group_norm("instance_norm", result, x, weight, bias,
                                      {.num_groups = x.size(1), .eps = options.eps}));
}

Tensor layer_norm(const Tensor& input, const Tensor& factors, const Tensor& shifts,
                  const LayerNormOptions& options) {
  const Call call("layer_norm", {input, factors, shifts},
                  {{"dims", std::ssize(options.normalized_shape.get())}, {"eps", options.eps}});
  const Tensor x = autocast_to_float32(input);
  const Tensor weight = autocast_to_float32(factors);
  const Tensor bias = autocast_to_float32(shifts);
  check_rows("layer_norm", x, weight, bias, options.normalized_shape);
  const int64_t values = count(options.normalized_shape.get());
  // A row is an image of one group, whose channels are single elements.
  const Tensor rows = reshape(x, {x.numel() / values, values});
  const auto flat = [&](const Tensor& t) { return t.defined() ? reshape(t, {values}) : t; };
  const Tensor own_weight = flat(weight), own_bias = flat(bias);
  const GroupNormOptions groups{.num_groups = 1, .eps = options.eps};
  const ops::GroupNormResult result =
      ops::group_norm_forward(rows, own_weight, own_bias, groups, "layer_norm");
  return call.gives(
      reshape(record_group_norm("layer_norm", result, rows, own_weight, own_bias, groups), x.shape()));
}

Tensor rms_norm(const Tensor& input, const Tensor& factors, const RmsNormOptions& options) {
  const Tensor x = autocast_to_float32(input);
  const Tensor weight = autocast_to_float32(factors);
  check_rows("rms_norm", x, weight, {}, options.normalized_shape);
  const double eps = options.eps.value_or(x.dtype() == float64   ? std::numeric_limits<double>::epsilon()
                                          : x.dtype() == float32 ? std::numeric_limits<float>::epsilon()
                                          : x.dtype() == float16 ? 0x1p-10
                                                                 : 0x1p-7);
  check<ValueError>(eps > 0 && std::isfinite(eps), "rms_norm: eps must be above 0, got {}", eps);
  const Call call("rms_norm", {x, weight},
                  {{"dims", std::ssize(options.normalized_shape.get())}, {"eps", eps}});
  const int64_t values = count(options.normalized_shape.get());
  const Tensor rows = reshape(x, {x.numel() / values, values});
  const Tensor own_weight = weight.defined() ? reshape(weight, {values}) : weight;
  const ops::RmsNormResult result = ops::rms_norm_forward(rows, own_weight, eps);
  const Tensor y = record("rms_norm", result.y, {rows, own_weight},
                          [x = saved(rows), weight = saved(own_weight), rrms = saved(result.rrms), eps](
                              const Tensor& dy, const Needs& needs) -> Grads {
                            if (!grad_enabled()) {
                              const ops::RmsNormGrads grads =
                                  ops::rms_norm_backward(dy, *x, *weight, *rrms, needs[0], needs[1]);
                              return {grads.x, grads.weight};
                            }
                            const DType compute = compute_dtype((*x).dtype());
                            const Tensor wide = (*x).to(compute), g = dy.to(compute);
                            const Tensor reciprocal = rsqrt(mean(square(wide), 1, true) + eps);
                            const Tensor h = wide * reciprocal;
                            const Tensor scaled = (*weight).defined() ? g * (*weight).to(compute) : g;
                            return {reciprocal * (scaled - h * mean(scaled * h, 1, true)), sum(g * h, 0)};
                          });
  return call.gives(reshape(y, x.shape()));
}

}  // namespace pleat
