#include "pleat/onnx/import/operators.h"

/// Resize, of which ONNX has many ways to say where a pixel of the result lies in the input
/// (https://onnx.ai/onnx/operators/onnx__Resize.html). What `interpolate` has goes there. The others are a
/// matrix for each dimension, whose rows are the weights of an element of the result.

namespace pleat::onnx::imported {
namespace {

struct Axis {
  int64_t dim, input, output;
  double scale;               ///< output / input, as it was given
  double start = 0, end = 1;  ///< of tf_crop_and_resize
};

struct Resize {
  std::string mode, transform, nearest;
  double cubic_a = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
  std::vector<Axis> axes;
};

/// Where the element of the result lies in the input.
double place(const Resize& r, const Axis& axis, int64_t o) {
  const auto i = static_cast<double>(o);
  const auto in = static_cast<double>(axis.input), out = static_cast<double>(axis.output);
  if (r.transform == "asymmetric") return i / axis.scale;
  if (r.transform == "align_corners") return axis.output == 1 ? 0 : i * (in - 1) / (out - 1);
  if (r.transform == "pytorch_half_pixel") return axis.output == 1 ? 0 : (i + 0.5) / axis.scale - 0.5;
  if (r.transform == "tf_half_pixel_for_nn") return (i + 0.5) / axis.scale;
  if (r.transform == "tf_crop_and_resize")
    return axis.output == 1 ? 0.5 * (axis.start + axis.end) * (in - 1)
                            : axis.start * (in - 1) + i * (axis.end - axis.start) * (in - 1) / (out - 1);
  if (r.transform == "half_pixel_symmetric") {
    const double adjusted = out / (axis.scale * in);
    return in / 2 * (1 - adjusted) + (i + 0.5) / axis.scale - 0.5;
  }
  return (i + 0.5) / axis.scale - 0.5;
}

double nearest_of(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

/// The weight of an element at a distance; `linear` and Keys' cubic.
double kernel(const Resize& r, double d) {
  d = std::abs(d);
  if (r.mode == "linear") return std::max(0.0, 1 - d);
  const double a = r.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

/// Weights [output, input] of an axis; rows that lie outside of the input are marked.
std::vector<double> weights_of(const Resize& r, const Axis& axis, std::vector<bool>& outside) {
  std::vector<double> weights(static_cast<std::size_t>(axis.input * axis.output), 0);
  const double stretch = r.antialias && axis.scale < 1 ? 1 / axis.scale : 1;
  const double reach = (r.mode == "linear" ? 1 : 2) * stretch;
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = place(r, axis, o);
    double* row = weights.data() + o * axis.input;
    outside[static_cast<std::size_t>(o)] =
        r.transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.input - 1));
    if (r.mode == "nearest") {
      const auto i = static_cast<int64_t>(nearest_of(r.nearest, x));
      row[std::clamp<int64_t>(i, 0, axis.input - 1)] = 1;
      continue;
    }
    double total = 0;
    for (auto i = static_cast<int64_t>(std::floor(x - reach)); static_cast<double>(i) <= x + reach; ++i) {
      const bool is_outside = i < 0 || i >= axis.input;
      if (is_outside && r.exclude_outside) continue;
      const double weight = kernel(r, (static_cast<double>(i) - x) / stretch);
      row[std::clamp<int64_t>(i, 0, axis.input - 1)] += weight;
      total += weight;
    }
    if (total != 0)
      for (int64_t i = 0; i < axis.input; ++i) row[i] /= total;
  }
  return weights;
}

Tensor along(const Tensor& x, const Resize& r, const Axis& axis) {
  std::vector<bool> outside(static_cast<std::size_t>(axis.output));
  const std::vector<double> weights = weights_of(r, axis, outside);
  if (r.mode == "nearest" && std::none_of(outside.begin(), outside.end(), [](bool b) { return b; })) {
    std::vector<int64_t> from;
    for (int64_t o = 0; o < axis.output; ++o) {
      const double* row = weights.data() + o * axis.input;
      from.push_back(std::find(row, row + axis.input, 1.0) - row);
    }
    return index_select(x, axis.dim, from_vector(from, Sizes{axis.output}, x.device()));
  }
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : float32;
  const Tensor matrix =
      from_vector(weights, Sizes{axis.output, axis.input}, Device()).to(dtype).to(x.device());
  Tensor y =
      movedim(matmul(movedim(x.to(dtype), {axis.dim}, {-1}), transpose(matrix, 0, 1)), {-1}, {axis.dim});
  std::vector<int64_t> places;
  for (int64_t o = 0; o < axis.output; ++o)
    if (outside[static_cast<std::size_t>(o)]) places.push_back(o);
  if (!places.empty())
    y = index_fill(y, axis.dim, from_vector(places, Sizes{std::ssize(places)}, x.device()), r.extrapolation);
  return y.dtype() == x.dtype() ? y : y.to(x.dtype());
}

/// The same by `interpolate`, where that has it.
std::optional<Tensor> interpolated(const Tensor& x, const Resize& r) {
  if (x.rank() < 3 || x.rank() > 5 || !is_floating(x.dtype()) || r.axes.empty() || r.axes.front().dim < 2)
    return std::nullopt;
  // An antialias of Pleat leaves out what lies beyond the edges, as exclude_outside does.
  if (r.antialias != r.exclude_outside && r.mode != "nearest") return std::nullopt;
  InterpolateOptions options;
  if (r.mode == "nearest" && r.transform == "asymmetric" && r.nearest == "floor")
    options.mode = Interpolation::nearest;
  else if (r.mode == "linear" && (r.transform == "half_pixel" || r.transform == "pytorch_half_pixel" ||
                                  r.transform == "align_corners"))
    options.mode = Interpolation::linear;
  else if (r.mode == "cubic" && (r.transform == "half_pixel" || r.transform == "align_corners") &&
           r.cubic_a == (r.antialias ? -0.5 : -0.75))
    options.mode = Interpolation::cubic;
  else
    return std::nullopt;
  options.align_corners = r.transform == "align_corners";
  options.antialias = r.antialias && r.mode != "nearest";
  std::vector<int64_t> size(x.shape().begin() + 2, x.shape().end());
  bool natural = true;
  for (const Axis& axis : r.axes) {
    if (r.transform == "pytorch_half_pixel" && axis.output == 1 && axis.input != 1) return std::nullopt;
    size[static_cast<std::size_t>(axis.dim - 2)] = axis.output;
    natural = natural && std::abs(axis.scale * static_cast<double>(axis.input) -
                                  static_cast<double>(axis.output)) < 1e-6;
  }
  // A scale by which sizes are rounded down lies elsewhere than these sizes do.
  if (!natural && !options.align_corners) return std::nullopt;
  options.size = size;
  return interpolate(x, options);
}

Tensor resize_of(NodeCall& n, const std::vector<double>& scales, std::vector<int64_t> sizes, Resize r) {
  Tensor x = n.x(0);
  std::vector<int64_t> axes = n.integers("axes");
  if (axes.empty())
    for (int64_t d = 0; d < x.rank(); ++d) axes.push_back(d);
  const std::size_t given = scales.empty() ? sizes.size() : scales.size();
  if (given != axes.size()) n.fail(fmt::format("needs {} scales or sizes, got {}", axes.size(), given));
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (!sizes.empty() && policy != "stretch") {
    double ratio = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double each =
          static_cast<double>(sizes[i]) / static_cast<double>(x.size(n.axis(axes[i], x.rank())));
      ratio = policy == "not_larger" ? std::min(ratio, each) : std::max(ratio, each);
    }
    for (std::size_t i = 0; i < axes.size(); ++i)
      sizes[i] = static_cast<int64_t>(
          std::floor(ratio * static_cast<double>(x.size(n.axis(axes[i], x.rank()))) + 0.5));
  }
  const std::vector<double> roi = n.opset() >= 11 && n.has(1) ? n.numbers(1) : std::vector<double>();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis axis{.dim = n.axis(axes[i], x.rank()), .input = 0, .output = 0, .scale = 1};
    axis.input = x.size(axis.dim);
    if (r.transform == "tf_crop_and_resize") {
      if (roi.size() != 2 * axes.size()) n.fail("needs a region of interest");
      axis.start = roi[i];
      axis.end = roi[axes.size() + i];
    }
    if (scales.empty()) {
      axis.output = sizes[i];
      axis.scale = static_cast<double>(axis.output) / static_cast<double>(axis.input);
    } else {
      axis.scale = scales[i];
      axis.output = static_cast<int64_t>(
          std::floor(static_cast<double>(axis.input) * (axis.end - axis.start) * axis.scale + 1e-9));
    }
    if (axis.output < 1 || axis.input < 1 || axis.output > int64_t{1} << 31)
      n.fail(fmt::format("cannot make {} elements of {} along axis {}", axis.output, axis.input, axis.dim));
    if (axis.output != axis.input || axis.scale != 1 || r.transform == "tf_crop_and_resize")
      r.axes.push_back(axis);
  }
  std::sort(r.axes.begin(), r.axes.end(), [](const Axis& a, const Axis& b) { return a.dim < b.dim; });
  if (r.axes.empty()) return x;
  if (const auto y = interpolated(x, r)) return *y;
  for (const Axis& axis : r.axes) x = along(x, r, axis);
  return x;
}

Tensor resize(NodeCall& n) {
  Resize r{
      .mode = n.text("mode", "nearest"),
      .transform = n.text("coordinate_transformation_mode", n.opset() < 11 ? "asymmetric" : "half_pixel"),
      .nearest = n.text("nearest_mode", n.opset() < 11 ? "floor" : "round_prefer_floor"),
      .cubic_a = n.number("cubic_coeff_a", -0.75),
      .extrapolation = n.number("extrapolation_value", 0),
      .antialias = n.flag("antialias"),
      .exclude_outside = n.flag("exclude_outside"),
      .axes = {}};
  if (r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic") n.fail("has no mode '" + r.mode + "'");
  const std::size_t scales = n.opset() < 11 ? 1 : 2;
  const bool by_sizes = n.has(3) && n.value(3).tensor.numel() > 0;
  return resize_of(n, by_sizes ? std::vector<double>() : n.numbers(scales),
                   by_sizes ? n.integers(3) : std::vector<int64_t>(), std::move(r));
}

/// The operator before Resize.
Tensor upsample(NodeCall& n) {
  const std::string mode = n.text("mode", "nearest");
  return resize_of(n, n.has(1) ? n.numbers(1) : n.numbers("scales"), {},
                   {.mode = mode == "bilinear" ? "linear" : mode,
                    .transform = "asymmetric",
                    .nearest = "floor",
                    .axes = {}});
}

}  // namespace

Operators resize_operators() {
  const std::vector<Slot> first{Slot::operand, Slot::option};
  return {
      {"Resize/4(antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
       "extrapolation_value "
       "keep_aspect_ratio_policy mode nearest_mode)",
       {resize, first}},
      {"Upsample/2(mode scales)", {upsample, first}},
  };
}

}  // namespace pleat::onnx::imported
