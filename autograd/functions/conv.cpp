#include "pleat/autograd/functions/conv.h"

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/format.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/problem.h"

/// The three passes of a convolution are each other's derivatives: every one of them is bilinear, so each
/// gradient is again one of the three.

namespace pleat {
namespace {

Tensor backward_input(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                      const ConvOptions& options);
Tensor backward_weight(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                       const ConvOptions& options);

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  const Tensor y = ops::conv_forward(x, w, bias, options);
  std::vector<Derivative> derivatives = {
      grad_of(x, [w = saved(w), shape = x.shape(),
                  options](const Tensor& dy) { return backward_input(dy, *w, shape, options); }),
      grad_of(w, [x = saved(x), shape = w.shape(), options](const Tensor& dy) {
        return backward_weight(dy, *x, shape, options);
      })};
  if (bias.defined())
    derivatives.push_back(grad_of(bias, [](const Tensor& dy) {
      return record("conv_backward_bias", ops::conv_backward_bias(dy),
                    {grad_of(dy, [shape = dy.shape()](const Tensor& db) {
                      Shape kept(shape.size(), 1);
                      kept[1] = shape[1];
                      return expand(reshape(db, kept), shape);
                    })});
    }));
  return record("conv", y, std::move(derivatives));
}

Tensor backward_input(const Tensor& dy, const Tensor& w, const Shape& input_shape,
                      const ConvOptions& options) {
  return record(
      "conv_backward_input", ops::conv_backward_input(dy, w, input_shape, options),
      {grad_of(dy, [w = saved(w), options](const Tensor& d) { return forward(d, *w, {}, options); }),
       grad_of(w, [dy = saved(dy), shape = w.shape(), options](const Tensor& d) {
         return backward_weight(*dy, d, shape, options);
       })});
}

Tensor backward_weight(const Tensor& dy, const Tensor& x, const Shape& weight_shape,
                       const ConvOptions& options) {
  return record(
      "conv_backward_weight", ops::conv_backward_weight(dy, x, weight_shape, options),
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
                    spatial_dims + 2, weight.describe());
}

Tensor batched_conv(const char* op, int64_t spatial_dims, const Tensor& x, const Tensor& weight,
                    const Tensor& bias, const ConvOptions& options) {
  check_weight_rank(op, spatial_dims, weight);
  if (x.rank() != spatial_dims + 1) return forward(x, weight, bias, options);
  return without_batch(forward(with_batch(x), weight, bias, options));
}

/// The shape of the convolution's input whose gradient the transposed convolution is.
Shape transposed_output(const char* op, int64_t spatial_dims, const Tensor& x, const Tensor& weight,
                        const ConvTransposeOptions& options) {
  const auto stride = options.stride.expand(spatial_dims, op, "stride");
  const auto dilation = options.dilation.expand(spatial_dims, op, "dilation");
  const auto extra = options.output_padding.expand(spatial_dims, op, "output_padding");
  check<ShapeError>(x.rank() == spatial_dims + 2, "{}: input needs {} dimensions [N, C, spatial...], got {}",
                    op, spatial_dims + 2, x.describe());
  check<ShapeError>(x.size(1) == weight.size(0),
                    "{}: input has {} channels, but weight {} needs {}\n  input  {}\n  weight {}", op,
                    x.size(1), weight.shape(), weight.size(0), x.describe(), weight.describe());
  check<ValueError>(options.groups >= 1, "{}: groups must be at least 1, got {}", op, options.groups);
  const std::vector<int64_t> kernel(weight.shape().begin() + 2, weight.shape().end());
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    check<ValueError>(stride[d] >= 1 && dilation[d] >= 1,
                      "{}: stride and dilation must be at least 1, got {} and {}", op, stride[d],
                      dilation[d]);
    check<ValueError>(extra[d] >= 0 && (extra[d] < stride[d] || extra[d] < dilation[d]),
                      "{}: output_padding {} must be below stride {} or dilation {}", op, extra[d], stride[d],
                      dilation[d]);
  }
  const auto padding = ops::resolve_padding(op, options.padding, kernel, stride, dilation);
  Shape shape{x.size(0), checked_multiply(weight.size(1), options.groups, op)};
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const int64_t spread = checked_multiply(x.shape()[d + 2] - 1, stride[d], op);
    const int64_t reach = checked_multiply(dilation[d], kernel[d] - 1, op);
    const int64_t size =
        checked_add(checked_add(spread, reach, op), extra[d] + 1, op) - padding[d].first - padding[d].second;
    check<ShapeError>(size >= 1,
                      "{}: the output would have size {} in spatial dimension {}\n  input  {}\n  weight {}",
                      op, size, d, x.describe(), weight.describe());
    shape.push_back(size);
  }
  return shape;
}

Tensor transposed_conv(const char* op, int64_t spatial_dims, const Tensor& x, const Tensor& weight,
                       const Tensor& bias, const ConvTransposeOptions& options) {
  check_weight_rank(op, spatial_dims, weight);
  if (x.rank() == spatial_dims + 1)
    return without_batch(transposed_conv(op, spatial_dims, with_batch(x), weight, bias, options));
  const Shape shape = transposed_output(op, spatial_dims, x, weight, options);
  check<ShapeError>(!bias.defined() || bias.shape() == Shape{shape[1]}, "{}: bias needs shape [{}], got {}",
                    op, shape[1], bias.defined() ? bias.describe() : "");
  // Padding as pairs: "same" has been worked out above for stride 1.
  ConvOptions conv{.stride = options.stride,
                   .padding = options.padding,
                   .dilation = options.dilation,
                   .groups = options.groups,
                   .implementation = options.implementation};
  const Tensor y = backward_input(x, weight, shape, conv);
  if (!bias.defined()) return y;
  Shape kept(y.shape().size(), 1);
  kept[1] = shape[1];
  return y + reshape(bias, kept);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv1d", 1, x, weight, bias, options);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv2d", 2, x, weight, bias, options);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  return batched_conv("conv3d", 3, x, weight, bias, options);
}
Tensor conv1d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv1d(x, weight, {}, options);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv2d(x, weight, {}, options);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  return conv3d(x, weight, {}, options);
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
