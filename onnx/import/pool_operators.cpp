#include "pleat/onnx/import/operators.h"

namespace pleat::onnx::imported {
namespace {

using Sides = std::vector<std::pair<int64_t, int64_t>>;

/// The widths of pad, which begin with the last dimension.
IntegerList widths_of(const Sides& sides) {
  Integers widths;
  for (auto side = sides.rbegin(); side != sides.rend(); ++side)
    widths.insert(widths.end(), {side->first, side->second});
  return IntegerList(widths);
}

/// What pools have in common.
struct Window {
  Tensor x;
  Integers kernel, stride, dilation;
  Sides sides;
  bool ceil_mode;
  bool padded = false;  ///< `x` has the padding in it, since it is wider than a pool's may be
};

Window window_of(NodeCall& n, double fill) {
  Window w{.x = n.x(0),
           .kernel = n.integers("kernel_shape"),
           .stride = {},
           .dilation = {},
           .sides = {},
           .ceil_mode = n.flag("ceil_mode")};
  if (w.x.rank() < 3 || w.x.rank() > 5) n.fail(fmt::format("needs images of 1 to 3 dimensions, got {}", w.x));
  const Integers ones(static_cast<std::size_t>(w.x.rank() - 2), 1);
  w.stride = n.integers("strides", ones);
  w.dilation = n.integers("dilations", ones);
  w.sides = sides_of(n, Shape(w.x.shape().begin() + 2, w.x.shape().end()), w.kernel, w.stride, w.dilation);
  for (std::size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    w.padded = w.padded || 2 * std::max(w.sides[d].first, w.sides[d].second) > reach;
  }
  if (w.padded) w.x = pad(w.x, widths_of(w.sides), {.value = fill});
  return w;
}

template <class Options>
Options options_of(const Window& w, Options options) {
  options.stride = w.stride;
  options.padding = w.padded ? Padding(0) : Padding(w.sides);
  options.dilation = w.dilation;
  options.ceil_mode = w.ceil_mode;
  return options;
}

NodeResults max_pool_of(NodeCall& n) {
  const DType dtype = n.dtype();
  Window w = window_of(n, -std::numeric_limits<double>::infinity());
  const Tensor x = is_floating(dtype) ? w.x : w.x.to(float32);
  const MaxPoolOptions options = options_of(w, MaxPoolOptions{.kernel_size = w.kernel});
  if (!n.wants(1)) return max_pool(x, options).to(dtype);
  if (w.padded) n.fail("indices with so much padding are not computed");
  auto [values, indices] = max_pool_with_indices(x, options);
  // Of a plane; ONNX counts through the whole tensor.
  const int64_t planes = x.size(0) * x.size(1), plane = x.numel() / std::max<int64_t>(planes, 1);
  Shape by_plane(static_cast<std::size_t>(x.rank()), 1);
  by_plane[0] = x.size(0);
  by_plane[1] = x.size(1);
  if (n.integer("storage_order", 0) == 1 && x.rank() == 4) {
    const Tensor row = floor_divide(indices, x.size(3));
    indices = (indices - row * x.size(3)) * x.size(2) + row;
  }
  return std::vector{values.to(dtype),
                     indices + view(arange(0, planes).to(x.device()) * plane, Sizes(by_plane))};
}

Tensor avg_pool_of(NodeCall& n) {
  const Window w = window_of(n, 0);
  const bool count_pad = n.flag("count_include_pad");
  const auto options = options_of(w, AvgPoolOptions{.kernel_size = w.kernel, .count_include_pad = count_pad});
  if (!w.padded || count_pad) return avg_pool(w.x, options);
  // The share of each window that is no padding.
  const Tensor inside = ones_like(n.x(0));
  return avg_pool(w.x, options) / maximum(avg_pool(pad(inside, widths_of(w.sides)), options), 1e-12);
}

Tensor lp_pool_of(NodeCall& n) {
  const Window w = window_of(n, 0);
  const auto p = static_cast<double>(n.integer("p", 2));
  return lp_pool(abs(w.x), options_of(w, LpPoolOptions{.norm_type = p, .kernel_size = w.kernel}));
}

Dims all_spatial(const Tensor& x) {
  Integers dims(static_cast<std::size_t>(std::max<int64_t>(x.rank() - 2, 0)));
  std::iota(dims.begin(), dims.end(), 2);
  return Dims(dims);
}

Tensor global_average_pool(NodeCall& n) {
  const Tensor& x = n.x();
  if (x.rank() < 3) n.fail(fmt::format("needs images, got {}", x));
  return x.rank() <= 5 ? adaptive_avg_pool(x, {.output_size = 1}) : mean(x, all_spatial(x), true);
}

Tensor max_unpool_of(NodeCall& n) {
  const Tensor &x = n.x(0), &indices = n.x(1);
  const Integers kernel = n.integers("kernel_shape"), ones(kernel.size(), 1);
  const Integers stride = n.integers("strides", ones),
                 pads = n.integers("pads", Integers(2 * kernel.size(), 0));
  const std::size_t dims = kernel.size();
  if (x.rank() != static_cast<int64_t>(dims) + 2 || stride.size() != dims || pads.size() != 2 * dims)
    n.fail(fmt::format("needs images of {} spatial dimensions, with strides and pads for them, got {}", dims,
                       x));
  Integers natural;
  for (std::size_t d = 0; d < kernel.size(); ++d)
    natural.push_back((x.size(static_cast<int64_t>(d) + 2) - 1) * stride[d] + kernel[d] - pads[d] -
                      pads[kernel.size() + d]);
  // Indices count through the tensor that was pooled, which is as large as follows from the options.
  int64_t plane = 1;
  for (const int64_t size : natural) plane *= size;
  const Tensor in_plane = remainder(indices, plane);
  Integers size = natural;
  if (n.has(2)) {
    const Integers shape = n.integers(2);
    if (shape.size() != dims + 2) n.fail("needs an output_shape of the input's rank");
    size.assign(shape.begin() + 2, shape.end());
  }
  const Tensor rows = reshape(x, {x.size(0), x.size(1), -1});
  const Tensor zero = zeros({x.size(0), x.size(1), plane}, {.dtype = x.dtype(), .device = x.device()});
  const Tensor flat = scatter(zero, 2, reshape(in_plane, Sizes(rows.shape())), rows);
  const Tensor y = unflatten(flat, 2, Sizes(natural));
  Sides more;
  for (std::size_t d = 0; d < dims; ++d) more.emplace_back(0, size[d] - natural[d]);
  return size == natural ? y : pad(y, widths_of(more));
}

}  // namespace

Operators pool_operators() {
  return {
      {"AveragePool/1(auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides)",
       {avg_pool_of}},
      {"GlobalAveragePool/1", {global_average_pool}},
      {"GlobalLpPool/1(p)", {[](NodeCall& n) -> NodeResults {
         return norm(n.x(), all_spatial(n.x()),
                     {.p = static_cast<double>(n.integer("p", 2)), .keepdim = true});
       }}},
      {"GlobalMaxPool/1", {[](NodeCall& n) -> NodeResults { return max(n.x(), all_spatial(n.x()), true); }}},
      {"LpPool/1(auto_pad ceil_mode dilations kernel_shape p pads strides)", {lp_pool_of}},
      {"MaxPool/1(auto_pad ceil_mode dilations kernel_shape pads storage_order strides)", {max_pool_of}},
      {"MaxUnpool/3(kernel_shape pads strides)", {max_unpool_of, {Slot::operand, Slot::option}}},
  };
}

}  // namespace pleat::onnx::imported
