#include "pleat/ops/sample/sample_points.h"

#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/sample/pixel_taps.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

// The three functions of ops/sample/pixel_taps.h, which are each other's derivatives.

/// Taps without their weights, which each function has its own of. No other object has the tensors.
struct KeptTaps {
  const char* op;
  Tensor index, image;
  Shape points;  ///< of y
  Shape shape;   ///< of x
  MemoryFormat format;

  ops::PixelTaps with(const Tensor& weight) const { return {index, weight, image}; }
};

Tensor sampled_input(const KeptTaps& taps, const Tensor& dy, const Tensor& weight);
Tensor sampled_weight(const KeptTaps& taps, const Tensor& dy, const Tensor& x);

Tensor sampled(const KeptTaps& taps, const Tensor& x, const Tensor& weight) {
  return record(
      "sampled_pixels", ops::sampled_pixels(taps.op, x, taps.with(weight), taps.points),
      {grad_of(x,
               [taps, weight = saved(weight)](const Tensor& dy) { return sampled_input(taps, dy, *weight); }),
       grad_of(weight, [taps, x = saved(x)](const Tensor& dy) { return sampled_weight(taps, dy, *x); })});
}

Tensor sampled_input(const KeptTaps& taps, const Tensor& dy, const Tensor& weight) {
  return record(
      "sampled_pixels_input",
      ops::sampled_pixels_input(taps.op, dy, taps.with(weight), taps.shape, taps.format),
      {grad_of(dy, [taps, weight = saved(weight)](const Tensor& d) { return sampled(taps, d, *weight); }),
       grad_of(weight, [taps, dy = saved(dy)](const Tensor& d) { return sampled_weight(taps, *dy, d); })});
}

Tensor sampled_weight(const KeptTaps& taps, const Tensor& dy, const Tensor& x) {
  return record(
      "sampled_pixels_weight", ops::sampled_pixels_weight(taps.op, dy, x, taps.with(Tensor())),
      {grad_of(dy, [taps, x = saved(x)](const Tensor& d) { return sampled(taps, *x, d); }),
       grad_of(x, [taps, dy = saved(dy)](const Tensor& d) { return sampled_input(taps, *dy, d); })});
}

// Weights as differentiable functions of the places, for gradients of gradients.

/// Pixels along one dimension that a place is made of: their indices as whole numbers, and their weights.
struct Tap {
  Tensor index, weight;
};

/// Places in pixels, within the image but for zeros.
Tensor padded(const Tensor& place, int64_t size, const ops::PlaceRule& o) {
  const auto last = static_cast<double>(size - 1);
  // Far beyond the image every place is as good; an infinite one has no neighbours to weigh.
  if (o.padding == GridPadding::zeros) return clamp(place, {.min = -3.0, .max = last + 3});
  if (o.padding == GridPadding::border) return clamp(place, {.min = 0.0, .max = last});
  const double low = o.align_corners ? 0 : -0.5;
  const double span = o.align_corners ? last : static_cast<double>(size);
  if (span == 0) return place * 0;
  const Tensor distance = abs(place - low);
  const Tensor flips = floor(distance / span);
  const Tensor rest = distance - flips * span;
  const Tensor is_even = remainder(flips, 2) == 0;
  return clamp(where(is_even, rest, span - rest) + low, {.min = 0.0, .max = last});
}

std::vector<Tap> taps_of(const Tensor& coordinate, int64_t size, const ops::PlaceRule& o) {
  const auto pixels = static_cast<double>(size);
  const Tensor place = o.in_pixels       ? coordinate
                       : o.align_corners ? (coordinate + 1) * ((pixels - 1) / 2)
                                         : ((coordinate + 1) * pixels - 1) / 2;
  if (o.mode != GridMode::cubic) {
    const Tensor inside = padded(place, size, o);
    if (o.mode == GridMode::nearest) return {{round(inside), inside * 0 + 1}};
    const Tensor low = floor(inside);
    const Tensor part = inside - low;
    return {{low, 1 - part}, {low + 1, part}};
  }
  const Tensor near = o.padding == GridPadding::zeros ? padded(place, size, o) : place;
  const Tensor low = floor(near);
  const Tensor t = near - low;
  constexpr double a = -0.75;
  const auto close = [](const Tensor& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](const Tensor& d) { return ((d - 5) * d + 8) * d * a - 4 * a; };
  std::vector<Tap> taps = {
      {low - 1, far(t + 1)}, {low, close(t)}, {low + 1, close(1 - t)}, {low + 2, far(2 - t)}};
  if (o.padding != GridPadding::zeros)
    for (Tap& tap : taps) tap.index = padded(tap.index, size, o);
  return taps;
}

/// The weights of the dimensions from `d` on, in the order of place_taps: those beyond the image are 0.
std::vector<Tensor> joined(const std::vector<std::vector<Tensor>>& weights, std::size_t d) {
  if (d + 1 == weights.size()) return weights[d];
  std::vector<Tensor> all;
  for (const Tensor& outer : weights[d])
    for (const Tensor& inner : joined(weights, d + 1)) all.push_back(outer * inner);
  return all;
}

Tensor weights_of(const Tensor& places, const ops::PlaceRule& rule) {
  const auto dims = std::ssize(rule.sizes);
  std::vector<std::vector<Tensor>> weights;
  for (int64_t d = 0; d < dims; ++d) {  // x, the first of a place, is the last dimension
    weights.emplace_back();
    const int64_t size = rule.sizes[static_cast<std::size_t>(d)];
    for (const Tap& tap : taps_of(select(places, -1, dims - 1 - d), size, rule)) {
      const Tensor index = tap.index.detach();
      const Tensor is_pixel = index >= 0 && index <= static_cast<double>(size - 1);
      weights.back().push_back(tap.weight * cast(is_pixel, tap.weight.dtype()));
    }
  }
  return stack(joined(weights, 0), 1);
}

Tensor places_gradient(const char* op, const Tensor& dweight, const Tensor& places,
                       const ops::PlaceRule& rule) {
  if (!grad_enabled())
    return ops::place_taps_backward(op, dweight, ops::to_format(places, MemoryFormat::contiguous), rule);
  return grad({weights_of(places, rule)}, {places}, {dweight}, {.create_graph = true})[0];
}

}  // namespace

Tensor weighted_pixels(const char* op, const Tensor& x, const ops::PixelTaps& taps, const Shape& points) {
  return sampled({op, taps.index, taps.image, points, x.shape(), x.memory_format()}, x, taps.weight);
}

Tensor sample_points(const char* op, const Tensor& x, const Tensor& places, const ops::PlaceRule& rule,
                     const Shape& points, const Tensor& image) {
  const ops::PlaceTaps taps = ops::place_taps(op, ops::to_format(places, MemoryFormat::contiguous), rule);
  const Tensor weights = record("place_taps", taps.weight,
                                {grad_of(places, [op, rule, places = saved(places)](const Tensor& dweight) {
                                  return places_gradient(op, dweight, *places, rule);
                                })});
  return weighted_pixels(op, x, {taps.index, weights, image}, points);
}

}  // namespace pleat
