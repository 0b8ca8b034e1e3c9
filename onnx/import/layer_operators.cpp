#include "pleat/onnx/import/operators.h"

/// Products, convolutions and norms.

namespace pleat::onnx::imported {
namespace {

/// alpha A B + beta C.
Tensor gemm(NodeCall& n) {
  const double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  const bool trans_a = n.flag("transA"), trans_b = n.flag("transB");
  const Tensor a = trans_a ? transpose(n.x(0), 0, 1) : n.x(0);
  const Tensor& b = n.x(1);
  const bool is_bias =
      !n.has(2) || (n.value(2).tensor.rank() == 1 && n.value(2).tensor.numel() == b.size(trans_b ? 0 : 1));
  if (alpha == 1 && (beta == 1 || !n.has(2)) && is_bias && is_floating(a.dtype()))
    return linear(a, trans_b ? b : transpose(b, 0, 1), n.x_or_none(2));
  Tensor y = matmul(a, trans_b ? transpose(b, 0, 1) : b);
  if (alpha != 1) y = y * alpha;
  if (!n.has(2)) return y;
  return beta == 1 ? y + n.x(2) : y + n.x(2) * beta;
}

Shape spatial(const Tensor& x) { return {x.shape().begin() + 2, x.shape().end()}; }

void check_images(const NodeCall& n, const Tensor& x, const Tensor& weight) {
  if (x.rank() < 3 || x.rank() > 5 || weight.rank() != x.rank())
    n.fail(fmt::format("needs an input and a weight of one rank from 3 to 5, got {} and {}", x, weight));
}

Tensor conv_transpose(NodeCall& n) {
  const Tensor &x = n.x(0), &weight = n.x(1);
  check_images(n, x, weight);
  const auto dims = static_cast<std::size_t>(x.rank() - 2);
  const Integers ones(dims, 1);
  const Integers stride = n.integers("strides", ones), dilation = n.integers("dilations", ones);
  Integers more = n.integers("output_padding", Integers(dims, 0)),
           pads = n.integers("pads", Integers(2 * dims, 0));
  const Integers sizes = n.integers("output_shape");
  const std::string mode = n.text("auto_pad", "NOTSET");
  if (stride.size() != dims || dilation.size() != dims || more.size() != dims || pads.size() != 2 * dims ||
      (!sizes.empty() && sizes.size() < dims))
    n.fail("needs a number for each spatial dimension");
  std::vector<std::pair<int64_t, int64_t>> padding;
  Integers cut(2 * dims, 0);
  for (std::size_t d = 0; d < dims; ++d) {
    const auto dim = static_cast<int64_t>(d) + 2;
    int64_t low = pads[d], high = pads[dims + d];
    const int64_t full = stride[d] * (x.size(dim) - 1) + (weight.size(dim) - 1) * dilation[d] + 1;
    if (d < sizes.size() || mode.starts_with("SAME")) {
      const int64_t wanted = d < sizes.size() ? sizes[sizes.size() - dims + d] : x.size(dim) * stride[d];
      const int64_t total = std::max<int64_t>(full + more[d] - wanted, 0);
      if (full + more[d] < wanted) more[d] = wanted - full;
      low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = total - low;
    }
    // Beyond what output_padding may be in a convolution: as less padding at the high side.
    const int64_t most = std::max(stride[d], dilation[d]) - 1;
    if (more[d] > most) {
      high -= more[d] - most;
      more[d] = most;
    }
    padding.emplace_back(low, high);
  }
  const ConvTransposeOptions options{.stride = stride,
                                     .padding = padding,
                                     .output_padding = more,
                                     .dilation = dilation,
                                     .groups = n.integer("group", 1)};
  const Tensor& bias = n.x_or_none(2);
  return x.rank() == 3   ? conv_transpose1d(x, weight, bias, options)
         : x.rank() == 4 ? conv_transpose2d(x, weight, bias, options)
                         : conv_transpose3d(x, weight, bias, options);
}

Tensor deform_conv(NodeCall& n) {
  const Integers pads = n.integers("pads", {0, 0, 0, 0});
  if (pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3])
    n.fail("pads of two sides should be equal");
  return deform_conv2d(n.x(0), n.x(2), n.x(1), n.x_or_none(3),
                       {.stride = n.integers("strides", {1, 1}),
                        .padding = Integers{pads[0], pads[1]},
                        .dilation = n.integers("dilations", {1, 1}),
                        .mask = n.x_or_none(4)});
}

Tensor col2im(NodeCall& n) {
  const Integers kernel = n.integers(2), ones(kernel.size(), 1);
  const Integers size = n.integers(1);
  return fold(n.x(0), Sizes(size),
              {.kernel_size = kernel,
               .stride = n.integers("strides", ones),
               .padding = sides_of(n, Shape(size), kernel, n.integers("strides", ones),
                                   n.integers("dilations", ones)),
               .dilation = n.integers("dilations", ones)});
}

NodeResults batch_normalization(NodeCall& n) {
  const Tensor &x = n.x(0), &mean = n.x(3), &var = n.x(4);
  // In training it changes the running statistics, which are then the network's own.
  const BatchNormOptions options{
      .training = n.training(), .momentum = 1 - n.number("momentum", 0.9), .eps = n.number("epsilon", 1e-5)};
  const Tensor y = batch_norm(x, n.x(1), n.x(2), mean, var, options);
  if (!n.wants(1)) return y;
  return std::vector{y, mean, var};
}

Tensor instance_normalization(NodeCall& n) {
  return instance_norm(n.x(0), n.x(1), n.x(2), {}, {}, {.eps = n.number("epsilon", 1e-5)});
}

Tensor group_normalization(NodeCall& n) {
  const Tensor& x = n.x(0);
  const GroupNormOptions options{.num_groups = n.integer("num_groups", 1), .eps = n.number("epsilon", 1e-5)};
  if (n.opset() >= 21) return group_norm(x, n.x(1), n.x(2), options);
  // Opset 18 has scale and bias of each group.
  Shape grouped{x.size(0), options.num_groups, -1};
  Shape by_group(3, 1);
  by_group[1] = options.num_groups;
  const Tensor y = reshape(group_norm(x, {}, {}, options), Sizes(grouped));
  return reshape(y * view(n.x(1), Sizes(by_group)) + view(n.x(2), Sizes(by_group)), Sizes(x.shape()));
}

Sizes from_axis(NodeCall& n, const Tensor& x) {
  const int64_t axis = n.axis(n.integer("axis", -1), x.rank());
  return Sizes(Shape(x.shape().begin() + axis, x.shape().end()));
}

/// Whether a norm's weight has the shape that a function of Pleat wants.
bool fits(const Tensor& weight, const Sizes& shape) { return !weight.defined() || weight.shape() == shape; }

NodeResults layer_normalization(NodeCall& n) {
  const Tensor& x = n.x(0);
  const Sizes shape = from_axis(n, x);
  const double eps = n.number("epsilon", 1e-5);
  const Tensor &weight = n.x(1), &bias = n.x_or_none(2);
  Tensor y;
  if (fits(weight, shape) && fits(bias, shape)) {
    y = layer_norm(x, weight, bias, {.normalized_shape = shape, .eps = eps});
  } else {
    y = layer_norm(x, {}, {}, {.normalized_shape = shape, .eps = eps}) * weight;
    if (bias.defined()) y = y + bias;
  }
  if (!n.wants(1) && !n.wants(2)) return y;
  std::vector<int64_t> dims;
  for (int64_t d = x.rank() - std::ssize(shape); d < x.rank(); ++d) dims.push_back(d);
  const auto [variance, centre] = var_mean(x, Dims(dims), {.correction = 0, .keepdim = true});
  return std::vector{y, centre, rsqrt(variance + eps)};
}

/// x / sqrt(mean of x^2 + eps) * weight.
Tensor rms(NodeCall& n, const Tensor& x, const Tensor& weight) {
  const Sizes shape = from_axis(n, x);
  const double eps = n.number("epsilon", 1e-5);
  if (fits(weight, shape)) return rms_norm(x, weight, {.normalized_shape = shape, .eps = eps});
  return rms_norm(x, {}, {.normalized_shape = shape, .eps = eps}) * weight;
}

/// Of a sum of two (and a bias), which is the fourth output.
NodeResults skip_norm(NodeCall& n, bool is_rms) {
  const std::size_t bias = is_rms ? 3 : 4;
  Tensor sum = n.x(0) + n.x(1);
  if (n.has(bias)) sum = sum + n.x(bias);
  const Sizes shape{sum.size(-1)};
  const double eps = n.number("epsilon", 1e-12);
  const Tensor y = is_rms ? rms_norm(sum, n.x(2), {.normalized_shape = shape, .eps = eps})
                          : layer_norm(sum, n.x(2), n.x_or_none(3), {.normalized_shape = shape, .eps = eps});
  return GraphValues{y, {}, {}, sum};
}

Tensor lrn(NodeCall& n) {
  const Tensor& x = n.x();
  const int64_t size = n.integer("size", 1);
  const double alpha = n.number("alpha", 1e-4), beta = n.number("beta", 0.75), k = n.number("bias", 1);
  if (size % 2 == 1) return local_response_norm(x, {.size = size, .alpha = alpha, .beta = beta, .k = k});
  // The window of an even size reaches further to the channels behind.
  const int64_t before = (size - 1) / 2, channels = x.size(1);
  const Tensor flat = reshape(square(x), {x.size(0), 1, channels, -1});
  const Tensor sums = avg_pool2d(
      flat, {.kernel_size = {size, 1}, .stride = 1, .padding = Padding({before, size - 1 - before}, {0, 0})});
  return x / pow(reshape(sums, Sizes(x.shape())) * alpha + k, beta);
}

}  // namespace

Tensor convolution(NodeCall& n, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_images(n, x, weight);
  const Integers ones(static_cast<std::size_t>(x.rank() - 2), 1);
  const Integers stride = n.integers("strides", ones), dilation = n.integers("dilations", ones);
  const Shape kernel = spatial(weight);
  const ConvOptions options{
      .stride = stride,
      .padding = sides_of(n, spatial(x), {kernel.begin(), kernel.end()}, stride, dilation),
      .dilation = dilation,
      .groups = n.integer("group", 1)};
  return x.rank() == 3   ? conv1d(x, weight, bias, options)
         : x.rank() == 4 ? conv2d(x, weight, bias, options)
                         : conv3d(x, weight, bias, options);
}

std::vector<std::pair<int64_t, int64_t>> sides_of(const NodeCall& n, const Shape& input,
                                                  const std::vector<int64_t>& kernel,
                                                  const std::vector<int64_t>& stride,
                                                  const std::vector<int64_t>& dilation) {
  const std::size_t dims = input.size();
  const std::string mode = n.text("auto_pad", "NOTSET");
  const Integers pads = n.integers("pads", Integers(2 * dims, 0));
  if (pads.size() != 2 * dims || kernel.size() != dims || stride.size() != dims || dilation.size() != dims)
    n.fail(fmt::format("needs pads, strides and dilations for {} spatial dimensions", dims));
  std::vector<std::pair<int64_t, int64_t>> sides;
  for (std::size_t d = 0; d < dims; ++d) {
    if (!mode.starts_with("SAME")) {
      sides.emplace_back(mode == "VALID" ? 0 : pads[d], mode == "VALID" ? 0 : pads[dims + d]);
      continue;
    }
    if (stride[d] < 1) n.fail("a stride is below 1");
    const int64_t outputs = (input[d] + stride[d] - 1) / stride[d];
    const int64_t total =
        std::max<int64_t>((outputs - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1 - input[d], 0);
    const int64_t low = mode == "SAME_LOWER" ? total - total / 2 : total / 2;
    sides.emplace_back(low, total - low);
  }
  return sides;
}

Operators layer_operators() {
  const std::vector<Slot> weights{Slot::operand, Slot::parameter};
  const Operator simplified{[](NodeCall& n) -> NodeResults { return rms(n, n.x(0), n.x(1)); }, weights};
  return {
      {"BatchNormalization/5(epsilon momentum training_mode)",
       {.compute = batch_normalization,
        .slots = {Slot::operand, Slot::parameter, Slot::parameter, Slot::buffer},
        .depends_on_mode = true}},
      {"Col2Im/3(dilations pads strides)", {col2im, {Slot::operand, Slot::option}}},
      {"Conv/3(auto_pad dilations group kernel_shape pads strides)",
       {[](NodeCall& n) -> NodeResults { return convolution(n, n.x(0), n.x(1), n.x_or_none(2)); }, weights}},
      {"ConvTranspose/3(auto_pad dilations group kernel_shape output_padding output_shape pads strides)",
       {conv_transpose, weights}},
      {"DeformConv/5(dilations group kernel_shape offset_group pads strides)", {deform_conv, weights}},
      {"Gemm/3(alpha beta transA transB)", {gemm, {Slot::operand, Slot::parameter}}},
      {"GroupNormalization/3(epsilon num_groups stash_type)", {group_normalization, weights}},
      {"InstanceNormalization/3(epsilon)", {instance_normalization, weights}},
      {"LRN/1(alpha beta bias size)", {lrn}},
      {"LayerNormalization/3(axis epsilon stash_type)", {layer_normalization, weights}},
      {"MatMul/2", {[](NodeCall& n) -> NodeResults { return matmul(n.x(0), n.x(1)); }, {Slot::parameter}}},
      {"RMSNormalization/2(axis epsilon stash_type)", simplified},
      {"SimplifiedLayerNormalization/2(axis epsilon stash_type)", simplified},
      {"com.microsoft.FusedMatMul/2(alpha transA transB)", {[](NodeCall& n) -> NodeResults {
         const auto side = [&](std::size_t i, const char* name) {
           return n.flag(name) ? transpose(n.x(i), -1, -2) : n.x(i);
         };
         return matmul(side(0, "transA"), side(1, "transB")) * n.number("alpha", 1);
       }}},
      {"com.microsoft.SimplifiedLayerNormalization/2(axis epsilon stash_type)", simplified},
      {"com.microsoft.SkipLayerNormalization/5(epsilon)",
       {[](NodeCall& n) { return skip_norm(n, false); }, {Slot::operand, Slot::operand, Slot::parameter}}},
      {"com.microsoft.SkipSimplifiedLayerNormalization/4(epsilon)",
       {[](NodeCall& n) { return skip_norm(n, true); }, {Slot::operand, Slot::operand, Slot::parameter}}},
  };
}

}  // namespace pleat::onnx::imported
