#include "pleat/ops/conv/conv.h"

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/core/precision.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/conv/problem.h"
#include "pleat/ops/conv/reduce.h"
#include "pleat/ops/reduce/reduce.h"

namespace pleat::ops {
namespace {

const char* op_name(int spatial_dims) {
  return spatial_dims == 1 ? "conv1d" : spatial_dims == 2 ? "conv2d" : "conv3d";
}

int spatial_dims_of(const Shape& weight) {
  const auto dims = static_cast<int>(weight.size()) - 2;
  check<ShapeError>(dims >= 1 && dims <= 3,
                    "conv: the weight needs 3 to 5 dimensions [K, C / groups, kernel...], got {}", weight);
  return dims;
}

/// [N, C, spatial...] with three spatial dimensions, the missing ones of size 1 in front.
Tensor five_dims(const Tensor& t) {
  Shape shape = t.shape();
  Strides strides = t.strides();
  while (shape.size() < 5) {
    shape.insert(shape.begin() + 2, 1);
    strides.insert(strides.begin() + 2, strides[0]);
  }
  return t.as_strided(std::move(shape), std::move(strides), t.offset());
}

Shape shape5(int64_t a, int64_t b, const Spatial& sizes) { return {a, b, sizes[0], sizes[1], sizes[2]}; }

/// Elements that lie dense in a format, seen with other sizes.
Tensor with_sizes(const Tensor& t, const Shape& shape, MemoryFormat format) {
  return t.as_strided(shape, dense_strides(shape, format), t.offset());
}

/// Brings operands into the form that an implementation takes, and its result into the one that was asked
/// for.
struct Call {
  const char* op;
  ConvProblem problem;  // the caller's
  ConvProblem solved;   // what the implementation sees
  const ConvImplementation& implementation;
  ConvLayout layout;
  PrecisionScope precision;  // for the matrix products inside

  Call(const char* op_, const ConvProblem& problem_, ConvPass pass, const std::string& wish)
      : op(op_),
        problem(problem_),
        solved(problem_),
        implementation(choose_conv(op_, problem_, pass, wish)),
        layout(implementation.layout(problem_)),
        precision(problem_.precision) {
    if (!implementation.takes_half()) solved.dtype = compute_dtype(problem.dtype);
    if (layout != ConvLayout::strided) solved = reduce(solved, format());
  }

  /// Of the result as the implementation writes it.
  MemoryFormat format() const {
    if (layout == ConvLayout::strided) return problem.result_format.value_or(problem.format);
    return layout == ConvLayout::rows ? MemoryFormat::channels_last : MemoryFormat::contiguous;
  }

  Tensor operand(const Tensor& t, const Shape& reduced) const {
    const Tensor typed = cast(t, solved.dtype);
    if (layout == ConvLayout::strided) return five_dims(typed);
    return with_sizes(to_format(typed, format()), reduced, format());
  }

  Tensor input(const Tensor& x) const {
    return operand(x, shape5(solved.batch, solved.in_channels, solved.input));
  }
  Tensor weight(const Tensor& w) const {
    return operand(w, shape5(solved.out_channels, solved.group_in(), solved.kernel));
  }
  Tensor output(const Tensor& y) const {
    return operand(y, shape5(solved.batch, solved.out_channels, solved.output));
  }

  Tensor result(const Shape& shape) const {
    return empty(shape, {.dtype = solved.dtype, .device = problem.device, .format = format()});
  }
  Tensor finished(const Tensor& result) const {
    return to_format(cast(result, problem.dtype), problem.result_format.value_or(format()));
  }
};

}  // namespace

Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  const int dims = spatial_dims_of(w.shape());
  const ConvOperand bias_operand =
      bias.defined() ? ConvOperand("bias", bias) : ConvOperand("bias", Shape(), x);
  const ConvProblem problem = make_conv_problem(op_name(dims), dims, {"input", x}, {"weight", w}, options,
                                                nullptr, bias.defined() ? &bias_operand : nullptr);
  const Call call(op_name(dims), problem, ConvPass::forward, options.implementation);
  const Tensor y = call.result(problem.output_shape());
  if (y.numel() > 0)
    call.implementation.forward(
        call.solved, call.input(x), call.weight(w),
        bias.defined() ? to_format(cast(bias, call.solved.dtype), MemoryFormat::contiguous) : Tensor(),
        call.output(y));
  return call.finished(y);
}

Tensor conv_backward_input(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                           const ConvOptions& options) {
  const int dims = spatial_dims_of(w.shape());
  const ConvOperand output("dy", dy);
  const ConvProblem problem =
      make_conv_problem(op_name(dims), dims, {"input", input_shape, dy}, {"weight", w}, options, &output);
  const std::string& own = options.backward_input_implementation;
  const Call call(op_name(dims), problem, ConvPass::backward_input,
                  own.empty() ? options.implementation : own);
  const Tensor dx = call.result(input_shape);
  if (dx.numel() > 0)
    call.implementation.backward_input(call.solved, call.output(dy), call.weight(w), call.input(dx));
  return call.finished(dx);
}

Tensor conv_backward_weight(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                            const ConvOptions& options) {
  const int dims = spatial_dims_of(weight_shape);
  const ConvOperand output("dy", dy);
  const ConvProblem problem =
      make_conv_problem(op_name(dims), dims, {"input", x}, {"weight", weight_shape, x}, options, &output);
  const std::string& own = options.backward_weight_implementation;
  const Call call(op_name(dims), problem, ConvPass::backward_weight,
                  own.empty() ? options.implementation : own);
  const Tensor dw = call.result(weight_shape);
  if (problem.batch == 0)
    fill(dw, 0);
  else
    call.implementation.backward_weight(call.solved, call.output(dy), call.input(x), call.weight(dw));
  return call.finished(dw);
}

Tensor conv_backward_bias(const Tensor& dy) {
  check<ShapeError>(dy.rank() >= 2, "conv_backward_bias: needs [N, K, ...], got {}", dy.describe());
  Dims dims{0};
  for (int64_t d = 2; d < dy.rank(); ++d) dims.values.push_back(d);
  return sum(dy, dims);
}

}  // namespace pleat::ops
