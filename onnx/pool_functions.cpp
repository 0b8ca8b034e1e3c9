#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/onnx/functions.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/shape/shape.h"

/// Pools and interpolation.

namespace pleat::onnx {
namespace {

/// The spatial sizes of the input and of the result.
struct Sides {
  Integers in, out;

  explicit Sides(Emit& e) {
    for (std::size_t d = 2; d < e.shape(0).size(); ++d) {
      in.push_back(e.fixed_size(0, static_cast<int64_t>(d)));
      if (!e.out_shape()[d].fixed()) e.refuse("a size of the result depends on the batch");
      out.push_back(e.out_shape()[d].offset);
    }
  }
  bool divides() const {
    for (std::size_t d = 0; d < in.size(); ++d)
      if (in[d] % out[d] != 0) return false;
    return true;
  }
  Integers windows() const {
    Integers result;
    for (std::size_t d = 0; d < in.size(); ++d) result.push_back(in[d] / out[d]);
    return result;
  }
  bool is_one() const {
    return std::all_of(out.begin(), out.end(), [](int64_t size) { return size == 1; });
  }
};

/// What must stand after the input, so that whole windows give the result's size: padding, and what rounding
/// up adds.
Integers reach_beyond(const Sides& sides, const Integers& kernel, const Integers& stride,
                      const Integers& dilation, const Integers& low) {
  Integers high;
  for (std::size_t d = 0; d < kernel.size(); ++d)
    high.push_back(std::max<int64_t>(
        (sides.out[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1 - sides.in[d] - low[d], 0));
  return high;
}

int64_t elements_of(const Integers& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Integers joined(Integers a, const Integers& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Padding of the spatial dimensions, as a node of its own.
Operand padded(Emit& e, const Operand& x, const Integers& low, const Integers& high, double value) {
  Integers pads{0, 0};
  pads = joined(joined(joined(pads, low), {0, 0}), high);
  return e.node("Pad", {x, e.list(pads), value}, {{"mode", "constant"}});
}

/// With the place of each maximum in its plane when `indices`.
Operands max_pool(Emit& e, bool indices) {
  const Sides sides(e);
  const Integers kernel = e.integers("kernel"), stride = e.integers("stride"),
                 dilation = e.integers("dilation");
  Integers low = e.integers("padding_low");
  Integers high = reach_beyond(sides, kernel, stride, dilation, low);
  Operand x = e.in(0);
  // The operator wants less padding than the kernel has elements.
  for (std::size_t d = 0; d < kernel.size(); ++d)
    if (low[d] >= kernel[d] || high[d] >= kernel[d]) {
      if (indices) e.refuse("MaxPool needs less padding than the kernel has elements");
      x = padded(e, x, low, high, -std::numeric_limits<double>::infinity());
      low.assign(low.size(), 0);
      high.assign(high.size(), 0);
      break;
    }
  Operands found = e.nodes(
      "MaxPool", {x},
      {{"kernel_shape", kernel}, {"strides", stride}, {"pads", joined(low, high)}, {"dilations", dilation}},
      indices ? 2 : 1);
  // The operator counts through all planes.
  if (indices) found[1] = apply("Mod", found[1], e.reshape(e.list(Integers{elements_of(sides.in)}), {}));
  return found;
}

Operand max_unpool(Emit& e) {
  const Sides sides(e);
  const SizeList& shape = e.out_shape();
  const SizeList planes{shape[0], shape[1], {0, elements_of(sides.out)}};
  const SizeList places{shape[0], shape[1], {0, elements_of(sides.in)}};
  const Operand zeros = apply("Expand", 0, e.list(planes));
  const Operand y =
      e.node("ScatterElements", {zeros, e.reshape(e.in(1, int64), places), e.reshape(e.in(0), places)},
             {{"axis", 2}});
  return e.reshape(y, shape);
}

Operand avg_pool(Emit& e) {
  const Sides sides(e);
  const Integers kernel = e.integers("kernel"), stride = e.integers("stride");
  Integers low = e.integers("padding_low"), high = e.integers("padding_high");
  const Integers ones(kernel.size(), 1);
  if (e.integers("dilation") != ones) e.refuse("AveragePool has no dilation before opset 19");
  const Integers reach = reach_beyond(sides, kernel, stride, ones, low);
  const bool is_padded = low != Integers(low.size(), 0) || high != Integers(high.size(), 0);
  // What rounding up adds counts for no divisor.
  bool rounds_up = false;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    rounds_up = rounds_up || reach[d] > high[d];
    high[d] = std::max(high[d], reach[d]);
  }
  const auto pool = [&](const Operand& x, const Integers& pads, bool count_pad) {
    return e.node(
        "AveragePool", {x},
        {{"kernel_shape", kernel}, {"strides", stride}, {"pads", pads}, {"count_include_pad", count_pad}});
  };
  const int64_t divisor = e.integer("divisor");
  if (divisor != 0) {
    const double factor = static_cast<double>(elements_of(kernel)) / static_cast<double>(divisor);
    return pool(e.in(0), joined(low, high), true) * factor;
  }
  const bool count_pad = e.flag("count_include_pad");
  if (!(count_pad && is_padded && rounds_up))
    return pool(e.in(0), joined(low, high), count_pad && !rounds_up);
  const Integers own_high = e.integers("padding_high");
  Integers beyond;
  for (std::size_t d = 0; d < kernel.size(); ++d) beyond.push_back(high[d] - own_high[d]);
  return pool(padded(e, e.in(0), low, own_high, 0), joined(Integers(low.size(), 0), beyond), false);
}

/// y = M x along each spatial dimension, with the matrices that the call has.
Operand by_matrices(Emit& e) {
  Operand y = e.in(0);
  const int64_t rank = e.rank(0);
  for (int64_t d = 2; d < rank; ++d) {
    const Tensor& matrix = e.tensor(static_cast<std::size_t>(d - 1));
    const Operand right = e.constant(ops::copy(transpose(matrix, 0, 1)));
    Integers order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(d)], order.back());
    const bool is_last = d == rank - 1;
    if (!is_last) y = e.transpose(y, order);
    y = apply("MatMul", y, right);
    if (!is_last) y = e.transpose(y, order);
  }
  return y;
}

Operand adaptive_avg_pool(Emit& e) {
  const Sides sides(e);
  if (sides.is_one()) return apply("GlobalAveragePool", e.in(0));
  if (!sides.divides()) return by_matrices(e);
  return e.node("AveragePool", {e.in(0)}, {{"kernel_shape", sides.windows()}, {"strides", sides.windows()}});
}

/// The maximum along one dimension after the other, window by window where they differ in size.
Operand adaptive_max_pool(Emit& e) {
  const Sides sides(e);
  if (sides.is_one()) return apply("GlobalMaxPool", e.in(0));
  if (sides.divides())
    return e.node("MaxPool", {e.in(0)}, {{"kernel_shape", sides.windows()}, {"strides", sides.windows()}});
  Operand y = e.in(0);
  for (std::size_t d = 0; d < sides.in.size(); ++d) {
    const int64_t n = sides.in[d], m = sides.out[d];
    const auto dim = static_cast<int64_t>(d) + 2;
    if (n == m) continue;
    Operands parts;
    for (int64_t o = 0; o < m; ++o) {
      const Operand window = e.slice(y, dim, {0, o * n / m}, {0, ((o + 1) * n + m - 1) / m});
      parts.push_back(e.node("ReduceMax", {window, e.list(Integers{dim})}, {{"keepdims", 1}}));
    }
    y = parts.size() == 1 ? parts[0] : e.concat(parts, dim);
  }
  return y;
}

/// The element that each one of the result is, along one dimension after the other.
Operand by_places(Emit& e) {
  Operand y = e.in(0);
  for (int64_t d = 2; d < e.rank(0); ++d) {
    const Tensor& matrix = e.tensor(static_cast<std::size_t>(d - 1));
    const std::vector<double> weights = matrix.to_vector<double>();
    const int64_t columns = matrix.size(1);
    Integers places;
    for (int64_t row = 0; row < matrix.size(0); ++row) {
      const auto first = weights.begin() + row * columns;
      places.push_back(std::max_element(first, first + columns) - first);
    }
    y = e.node("Gather", {y, e.list(places)}, {{"axis", d}});
  }
  return y;
}

Operand interpolate(Emit& e) {
  const Sides sides(e);
  const auto mode = static_cast<Interpolation>(e.integer("mode"));
  bool whole = true;
  for (std::size_t d = 0; d < sides.in.size(); ++d) whole = whole && sides.out[d] % sides.in[d] == 0;
  const bool nearest = mode == Interpolation::nearest || mode == Interpolation::nearest_exact;
  const bool smooth = mode == Interpolation::linear || mode == Interpolation::cubic;
  if (nearest && !(whole && e.flag("by_sizes"))) return by_places(e);
  // Of the other cases runtimes know few, and not all alike.
  if (!nearest &&
      !(smooth && e.rank(0) == 4 && e.flag("by_sizes") && !e.flag("antialias") && e.out_dtype() == float32))
    return by_matrices(e);
  Integers axes;
  for (int64_t d = 2; d < e.rank(0); ++d) axes.push_back(d);
  NodeAttributes attributes{{"mode", nearest                         ? "nearest"
                                     : mode == Interpolation::linear ? "linear"
                                                                     : "cubic"},
                            {"coordinate_transformation_mode", nearest                   ? "asymmetric"
                                                               : e.flag("align_corners") ? "align_corners"
                                                                                         : "half_pixel"}};
  Operand scales, sizes;
  if (nearest) {
    attributes.emplace_back("nearest_mode", "floor");
    std::vector<float> factors{1, 1};
    for (std::size_t d = 0; d < sides.in.size(); ++d)
      factors.push_back(static_cast<float>(sides.out[d] / sides.in[d]));
    scales = e.constant(from_vector(factors, {std::ssize(factors)}, Device()));
  } else {
    attributes.emplace_back("cubic_coeff_a", -0.75);
    attributes.emplace_back("axes", axes);
    sizes = e.list(sides.out);
  }
  return e.node("Resize", {e.in(0), {}, scales, sizes}, attributes);
}

}  // namespace

Conversions pool_functions() {
  return {
      {"max_pool", {1, 1, [](Emit& e) { return max_pool(e, false); }}},
      {"max_pool_with_indices", {1, 1, [](Emit& e) { return max_pool(e, true); }}},
      {"max_unpool", {2, 2, max_unpool}},
      {"avg_pool", {1, 1, avg_pool}},
      {"adaptive_avg_pool", {2, 4, adaptive_avg_pool}},
      {"adaptive_max_pool", {1, 1, adaptive_max_pool}},
      {"interpolate", {2, 4, interpolate}},
  };
}

}  // namespace pleat::onnx
