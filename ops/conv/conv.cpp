#include "pleat/ops/conv/conv.h"

#include <algorithm>
#include <array>
#include <optional>

#include "pleat/autograd/autocast.h"
#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/conv_norm_act.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/spatial/channels_hint.h"

/// The three passes of a convolution are each other's derivatives: every one of them is bilinear, so each
/// gradient is again one of the three.

namespace pleat {
namespace {

Tensor backward_input(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                      const ConvOptions& options);
Tensor backward_weight(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                       const ConvOptions& options);

Tensor backward_bias(const Tensor& dy) {
  return record("conv_backward_bias", ops::conv_backward_bias(dy),
                {grad_of(dy, [shape = dy.shape()](const Tensor& db) {
                  Shape kept(shape.size(), 1);
                  kept[1] = shape[1];
                  return expand(reshape(db, kept), shape);
                })});
}

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options,
               ops::ConvFusion* fusion = nullptr) {
  const Tensor y = ops::conv_forward(x, w, bias, options, fusion);
  std::vector<Derivative> derivatives = {
      grad_of(x, [w = saved(w), shape = x.shape(),
                  options](const Tensor& dy) { return backward_input(dy, *w, shape, options); }),
      grad_of(w, [x = saved(x), shape = w.shape(), options](const Tensor& dy) {
        return backward_weight(dy, *x, shape, options);
      })};
  if (bias.defined()) derivatives.push_back(grad_of(bias, backward_bias));
  return record(ops::conv_name(w.shape()), y, std::move(derivatives));
}

/// Of what a norm makes of x, as one node: the gradient of the norm's result is not written where the
/// convolution sums it up, and neither is that result where the convolution reads x.
Tensor forward_normalized(const Tensor& x, const PendingNorm& norm, const Tensor& w, const Tensor& bias,
                          const ConvOptions& options, ops::ConvFusion& fusion) {
  fusion.by = norm.by.get();
  const Tensor y = ops::conv_forward(x, w, bias, options, &fusion);
  const auto gradients = [x = saved(x), weight = saved(norm.weight), shift = saved(norm.bias),
                          mean = saved(norm.mean), rstd = saved(norm.rstd), by = norm.by, of = norm.options,
                          input = saved(fusion.input), w = saved(w),
                          options](const Grads& dys, const Needs& needs) {
    const Tensor& dy = dys[0];
    const bool into_norm = needs[0] || needs[1] || needs[2];
    Grads grads(5);
    if (grad_enabled()) {
      const auto again = std::make_shared<PendingNorm>(PendingNorm{*weight, *shift, *mean, *rstd, of, by});
      if (into_norm)
        grads = batch_norm_gradients(backward_input(dy, *w, (*x).shape(), options), *x, *weight, *shift,
                                     *mean, *rstd, {}, of, needs);
      grads.resize(5);
      grads[3] = needs[3] ? backward_weight(dy, value({*x, {}, again}), (*w).shape(), options) : Tensor();
      if (needs[4]) grads[4] = backward_bias(dy);
      return grads;
    }
    const Tensor made = *input;
    ops::ConvFusion beside{.by = by.get(), .x = *x};
    if (needs[3])
      grads[3] = ops::conv_backward_weight(dy, made.defined() ? made : *x, (*w).shape(), options,
                                           made.defined() ? nullptr : &beside);
    if (needs[4]) grads[4] = ops::conv_backward_bias(dy);
    if (into_norm) {
      const Tensor d = ops::conv_backward_input(dy, *w, (*x).shape(), options, &beside);
      const ops::BatchNormGrads through =
          ops::batch_norm_backward(d, *x, *weight, *shift, *mean, *rstd, of, needs[0], "batch_norm", {}, {},
                                   beside.sums ? &*beside.sums : nullptr);
      grads[0] = through.x, grads[1] = through.weight, grads[2] = through.bias;
    }
    return grads;
  };
  return record(std::string("norm_act_") + ops::conv_name(w.shape()), y,
                {Derivative{{x, norm.weight, norm.bias, w, bias}, gradients}});
}

Tensor backward_input(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                      const ConvOptions& options) {
  const Tensor dx = ops::conv_backward_input(dy, w, input_shape, options);
  return record(
      std::string(ops::conv_name(w.shape())) + "_backward_input", dx,
      {grad_of(dy, [w = saved(w), options](const Tensor& d) { return forward(d, *w, {}, options); }),
       grad_of(w, [dy = saved(dy), shape = w.shape(), options](const Tensor& d) {
         return backward_weight(*dy, d, shape, options);
       })});
}

Tensor backward_weight(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                       const ConvOptions& options) {
  const Tensor dw = ops::conv_backward_weight(dy, x, weight_shape, options);
  return record(
      std::string(ops::conv_name(dw.shape())) + "_backward_weight", dw,
      {grad_of(dy, [x = saved(x), options](const Tensor& d) { return forward(*x, d, {}, options); }),
       grad_of(x, [dy = saved(dy), shape = x.shape(), options](const Tensor& d) {
         return backward_input(*dy, d, shape, options);
       })});
}

Tensor with_batch(const Tensor& x) {
  Shape shape = x.shape();
  shape.insert(shape.begin(), 1);
  return reshape(x, std::move(shape));
}

Tensor without_batch(const Tensor& y) { return reshape(y, Shape(y.shape().begin() + 1, y.shape().end())); }

void check_weight_rank(const char* op, int64_t spatial_dims, const Tensor& weight) {
  check<ShapeError>(weight.rank() == spatial_dims + 2, "{}: the weight needs {} dimensions, got {}", op,
                    spatial_dims + 2, weight);
}

/// Of one sample [C, spatial...], whose shape a message about a batch would not show as it was given.
void check_sample(const char* op, const Tensor& x, int64_t channels) {
  if (x.size(0) == channels) return;
  std::string hint = ops::channels_last_hint(x.shape(), channels, 0);
  if (hint.empty() && channels == 1)
    hint = "; a batch of pictures without a dimension for their one channel needs it: unsqueeze(x, 1)";
  fail<ShapeError>("{}: one sample [C, spatial...] needs {} channels, got {}{}", op, channels, x, hint);
}

/// Input, weight and bias in the types of an Autocast scope; what is cast comes to lie as convolutions read
/// it.
std::array<Tensor, 3> typed(const Tensor& input, const Tensor& weight, const Tensor& bias,
                            std::optional<MemoryFormat> asked) {
  std::array<Tensor, 3> operands{input, weight, bias};
  if (const std::optional<DType> half = autocast_dtype()) {
    const MemoryFormat own = conv_format(input.device(), *half, Precision::highest);
    autograd::cast_to_half(operands, conv_result_format(asked).value_or(own));
  }
  return operands;
}

/// Of a convolution or a transposed one, for those who watch calls.
template <class Options>
Attributes traced_options(const char* op, int64_t spatial_dims, const Tensor& weight,
                          const Options& options) {
  const Shape stride = options.stride.expand(spatial_dims, op, "stride");
  const Shape dilation = options.dilation.expand(spatial_dims, op, "dilation");
  const auto sides = ops::resolve_padding(
      op, options.padding, {weight.shape().begin() + 2, weight.shape().end()}, stride, dilation);
  std::vector<int64_t> low, high;
  for (const auto& [before, after] : sides) low.push_back(before), high.push_back(after);
  return {{"stride", stride},
          {"padding_low", low},
          {"padding_high", high},
          {"dilation", dilation},
          {"groups", options.groups}};
}

/// Both operands as all passes read them on CUDA, each of which would else convert them anew. `call` checks
/// them first.
template <class Call>
std::array<Tensor, 2> laid_out(const Tensor& a, const Tensor& b, const Call& call) {
  if (!a.device().is_cuda()) return {a, b};
  const MemoryFormat format = call().problem.wanted_format();
  return {to_format(a, format), to_format(b, format)};
}

FusedTensor batched_conv(const char* op, int64_t spatial_dims, const FusedTensor& input,
                         const Tensor& filters, const Tensor& shifts, const ConvOptions& options,
                         bool before_norm = false) {
  check_weight_rank(op, spatial_dims, filters);
  if (input.x.rank() == spatial_dims + 1) {
    const Tensor one = value(input);
    if (options.groups >= 1) check_sample(op, one, checked_multiply(filters.size(1), options.groups, op));
    return {without_batch(batched_conv(op, spatial_dims, {with_batch(one)}, filters, shifts, options).x)};
  }
  const auto operands = typed(input.x, filters, shifts, options.format);
  const Tensor& bias = operands[2];
  static constexpr std::array<const char*, 3> with_norm{"norm_act_conv1d", "norm_act_conv2d",
                                                        "norm_act_conv3d"};
  const Call call(input.norm == nullptr ? op : with_norm[static_cast<std::size_t>(spatial_dims - 1)],
                  {input.x, filters, shifts},
                  [&] { return traced_options(op, spatial_dims, filters, options); });
  const auto [x, weight] = laid_out(
      operands[0], operands[1], [&] { return ops::forward_call(operands[0], operands[1], bias, options); });
  ops::ConvFusion fusion{.wants_moments = before_norm};
  FusedTensor y{input.norm != nullptr ? forward_normalized(x, *input.norm, weight, bias, options, fusion)
                                      : forward(x, weight, bias, options, before_norm ? &fusion : nullptr)};
  if (fusion.moments) y.moments = std::make_shared<ops::Moments>(*std::move(fusion.moments));
  call.gives(y.x);
  return y;
}

/// What a transposed convolution comes down to: the gradient of a convolution with respect to an input of
/// this shape, widened by zeros at the high sides.
struct TransposedPlan {
  Shape shape;
  ConvOptions whose;            ///< the convolution's
  std::vector<int64_t> widths;  ///< as `pad` takes them: the last dimension first
  bool widens = false;
};

/// Output padding moves the high edge outwards, which takes padding away; where none is left, no window
/// reaches.
TransposedPlan plan_transposed(const char* op, int64_t spatial_dims, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const ConvTransposeOptions& options) {
  const auto stride = options.stride.expand(spatial_dims, op, "stride");
  const auto dilation = options.dilation.expand(spatial_dims, op, "dilation");
  const auto extra = options.output_padding.expand(spatial_dims, op, "output_padding");
  const auto tensors = [&] {
    return fmt::format("\n  input  {}\n  weight {}", x.describe(), weight.describe());
  };
  check<ShapeError>(x.rank() == spatial_dims + 2, "{}: input needs {} dimensions [N, C, spatial...]{}", op,
                    spatial_dims + 2, tensors);
  if (x.size(1) != weight.size(0))
    fail<ShapeError>(
        "{}: input has {} channels, but weight {} needs {}; the weight of a transposed "
        "convolution is [C, K / groups, kernel...]{}{}",
        op, x.size(1), weight.shape(), weight.size(0), ops::channels_last_hint(x.shape(), weight.size(0)),
        tensors);
  check<ValueError>(options.groups >= 1, "{}: groups must be at least 1, got {}", op, options.groups);
  const Shape kernel(weight.shape().begin() + 2, weight.shape().end());
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    check<ValueError>(stride[d] >= 1 && dilation[d] >= 1,
                      "{}: stride and dilation must be at least 1, got {} and {}", op, stride[d],
                      dilation[d]);
    check<ValueError>(extra[d] >= 0 && (extra[d] < stride[d] || extra[d] < dilation[d]),
                      "{}: output_padding {} must be below stride {} or dilation {}", op, extra[d], stride[d],
                      dilation[d]);
  }
  TransposedPlan plan;
  Padding::List padding = ops::resolve_padding(op, options.padding, kernel, stride, dilation);
  const int64_t channels = checked_multiply(weight.size(1), options.groups, op);
  check<ShapeError>(!bias.defined() || bias.shape() == Shape{channels}, "{}: bias needs shape [{}], got {}",
                    op, channels, [&] { return bias.defined() ? bias.describe() : ""; });
  plan.shape = {x.size(0), channels};
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    auto& [low, high] = padding[d];
    const int64_t spread = checked_multiply(x.shape()[d + 2] - 1, stride[d], op);
    const int64_t reach = checked_multiply(dilation[d], kernel[d] - 1, op);
    // Of the elements that no window reaches, a convolution has up to stride - 1 behind its last window.
    const int64_t unreached = std::max<int64_t>(extra[d] - high, 0);
    const int64_t behind = unreached < stride[d] ? unreached : 0, zeros = unreached - behind;
    high = std::max<int64_t>(high - extra[d], 0);
    const int64_t full = checked_add(checked_add(spread, reach, op), 1 + behind, op);
    const int64_t size = checked_subtract(checked_subtract(full, low, op), high, op);
    check<ShapeError>(size + zeros >= 1, "{}: the output would have size {} in spatial dimension {}{}", op,
                      size + zeros, d, tensors);
    // Where padding takes all that windows reach, one element is made, and cut off again.
    const bool is_cut = size < 1;
    if (is_cut) low -= 1 - size;
    const int64_t added = is_cut ? size + zeros : zeros;
    plan.shape.push_back(is_cut ? 1 : size);
    plan.widths.insert(plan.widths.begin(), {is_cut ? -1 : 0, added});
    plan.widens = plan.widens || added > 0;
  }
  plan.whose = {.stride = options.stride,
                .padding = Padding(padding),
                .dilation = options.dilation,
                .groups = options.groups,
                .implementation = options.implementation,
                .format = options.format,
                .precision = options.precision};
  return plan;
}

Tensor transposed_conv(const char* op, int64_t spatial_dims, const Tensor& input, const Tensor& filters,
                       const Tensor& shifts, const ConvTransposeOptions& options) {
  check_weight_rank(op, spatial_dims, filters);
  if (input.rank() == spatial_dims + 1) {
    check_sample(op, input, filters.size(0));
    return without_batch(transposed_conv(op, spatial_dims, with_batch(input), filters, shifts, options));
  }
  const Call call(op, {input, filters, shifts}, [&] {
    Attributes attributes = traced_options(op, spatial_dims, filters, options);
    attributes.emplace_back("output_padding",
                            options.output_padding.expand(spatial_dims, op, "output_padding"));
    return attributes;
  });
  const auto [x, weight, bias] = typed(input, filters, shifts, options.format);
  ops::check_one_type(op, "input", x, "weight", weight);
  const TransposedPlan plan = plan_transposed(op, spatial_dims, x, weight, bias, options);
  const auto [dy, w] = laid_out(x, weight, [&, &image = x, &kernel = weight] {
    return ops::backward_input_call(image, kernel, plan.shape, plan.whose);
  });
  Tensor y = backward_input(dy, w, plan.shape, plan.whose);
  if (plan.widens) y = pad(y, plan.widths);
  if (bias.defined()) {
    Shape kept(y.shape().size(), 1);
    kept[1] = plan.shape[1];
    y = y + reshape(bias, kept);
  }
  return call.gives(y);
}

}  // namespace

std::optional<ops::ConvCall> ops::transposed_call(const Tensor& x, const Tensor& w, const Tensor& bias,
                                                  const ConvTransposeOptions& options) {
  constexpr std::array names{"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  (void)conv_name(w.shape());
  const int64_t dims = w.rank() - 2;
  const char* op = names[static_cast<std::size_t>(dims - 1)];
  const TransposedPlan plan = plan_transposed(op, dims, x, w, bias, options);
  if (plan.widens) return std::nullopt;
  ConvCall call = backward_input_call(x, w, plan.shape, plan.whose);
  call.op = op;
  call.bias = bias;
  return call;
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv1d", 1, {x}, weight, bias, options).x;
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv2d", 2, {x}, weight, bias, options).x;
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv3d", 3, {x}, weight, bias, options).x;
}

FusedTensor fused_conv(const FusedTensor& x, const Tensor& weight, const Tensor& bias,
                       const ConvOptions& options, bool before_norm) {
  const char* op = ops::conv_name(weight.shape());
  return batched_conv(op, weight.rank() - 2, x, weight, bias, options, before_norm);
}

Tensor conv_norm_act(const Tensor& x, const Tensor& weight, const Tensor& bias, const BatchNormOperands& norm,
                     const ConvOptions& options) {
  const RecordOp range("conv_norm_act", x, weight, bias);
  return value(fused_norm(fused_conv({x}, weight, bias, options, norm.options.training), norm, false));
}

Tensor norm_act_conv(const Tensor& x, const BatchNormOperands& norm, const Tensor& weight, const Tensor& bias,
                     const ConvOptions& options) {
  const RecordOp range("norm_act_conv", x, weight, bias);
  // The norm changes its running statistics, so the convolution's operands are checked before it.
  const auto [input, filters, shifts] = typed(x, weight, bias, options.format);
  (void)ops::forward_call(input, filters, shifts, options);
  return fused_conv(fused_norm({x}, norm, true), weight, bias, options, false).x;
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options) {
  return transposed_conv("conv_transpose1d", 1, x, weight, bias, options);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options) {
  return transposed_conv("conv_transpose2d", 2, x, weight, bias, options);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& options) {
  return transposed_conv("conv_transpose3d", 3, x, weight, bias, options);
}

}  // namespace pleat
