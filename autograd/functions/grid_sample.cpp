#include "pleat/autograd/functions/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/compare.h"
#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/functions/index.h"
#include "pleat/autograd/functions/join.h"
#include "pleat/autograd/functions/math.h"
#include "pleat/autograd/functions/matmul.h"
#include "pleat/autograd/functions/select.h"
#include "pleat/autograd/functions/shape.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/shape/view.h"

namespace pleat {
namespace {

constexpr const char* op = "grid_sample";

/// Pixels along one dimension that a place is made of: their indices as whole numbers, and their weights,
/// which are undefined where they are 1.
struct Tap {
  Tensor index, weight;
};

/// Places in pixels, within the image but for zeros.
Tensor padded(const Tensor& place, int64_t size, const GridSampleOptions& o) {
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

std::vector<Tap> taps_of(const Tensor& coordinate, int64_t size, const GridSampleOptions& o) {
  const auto pixels = static_cast<double>(size);
  const Tensor place =
      o.align_corners ? (coordinate + 1) * ((pixels - 1) / 2) : ((coordinate + 1) * pixels - 1) / 2;
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

/// Taps whose indices are pixels: those beyond weigh nothing.
Tap within(const Tap& tap, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  const Tensor index = tap.index.detach();
  const Tensor is_pixel = index >= 0 && index <= last;
  return {cast(clamp(index, {.min = 0.0, .max = last}), int64),
          tap.weight * cast(is_pixel, tap.weight.dtype())};
}

/// The taps of the dimensions from `d` on, joined: places in the plane, and products of weights.
std::vector<Tap> joined(const std::vector<std::vector<Tap>>& taps, const Shape& sizes, std::size_t d) {
  if (d + 1 == taps.size()) return taps[d];
  int64_t step = 1;
  for (std::size_t k = d + 1; k < sizes.size(); ++k) step *= sizes[k];
  std::vector<Tap> all;
  for (const Tap& outer : taps[d])
    for (const Tap& inner : joined(taps, sizes, d + 1))
      all.push_back({outer.index * step + inner.index, outer.weight * inner.weight});
  return all;
}

void check_operands(const Tensor& x, const Tensor& grid, const GridSampleOptions& o) {
  ops::check_types<ops::Floating>(op, x.dtype());
  ops::check_one_type(op, "the grid", grid, "the image", x);
  check<DeviceError>(x.device() == grid.device(), "{}: image and grid must be on one device, got {} and {}",
                     op, x.device(), grid.device());
  check<ShapeError>(
      (x.rank() == 4 || x.rank() == 5) && grid.rank() == x.rank() && grid.size(0) == x.size(0) &&
          grid.size(-1) == x.rank() - 2,
      "{}: needs images [N, C, H, W] and a grid [N, height, width, 2], or [N, C, D, H, W] and [N, "
      "depth, height, width, 3], got {} and {}",
      op, x, grid);
  for (int64_t d = 2; d < x.rank(); ++d)
    check<ShapeError>(x.size(d) >= 1, "{}: the images have no pixels: {}", op, x);
  check<ValueError>(o.mode != GridMode::cubic || x.rank() == 4,
                    "{}: cubic goes with two spatial dimensions, got {}", op, x);
}

/// From -1 to 1 through the centres of n pixels.
Tensor centres(int64_t n, bool align_corners, const TensorOptions& options) {
  if (n <= 1) return zeros({n}, options);
  const double end = align_corners ? 1 : 1 - 1 / static_cast<double>(n);
  return linspace(-end, end, n, options);
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options) {
  const RecordOp range(op, x, grid);
  check_operands(x, grid, options);
  const DType compute = compute_dtype(x.dtype());
  const Shape sizes(x.shape().begin() + 2, x.shape().end());
  Shape shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  int64_t places = 1, pixels = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) places = checked_multiply(places, shape[d], op);
  for (const int64_t size : sizes) pixels *= size;
  const Tensor image = reshape(cast(x, compute), {x.size(0), x.size(1), pixels});
  const Tensor at = reshape(cast(grid, compute), {x.size(0), places, std::ssize(sizes)});
  std::vector<std::vector<Tap>> taps(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d)  // x, the first of a place, is the last dimension
    for (const Tap& tap :
         taps_of(select(at, -1, std::ssize(sizes) - 1 - static_cast<int64_t>(d)), sizes[d], options))
      taps[d].push_back(within(tap, sizes[d]));
  const ops::IndicesAreChecked checked(ops::IndicesAreChecked::Sign::not_negative);
  Tensor y;
  for (const Tap& tap : joined(taps, sizes, 0)) {
    const Tensor index = ops::expand(ops::unsqueeze(tap.index, 1), {x.size(0), x.size(1), places});
    const Tensor part = gather(image, 2, index) * unsqueeze(tap.weight, 1);
    y = y.defined() ? y + part : part;
  }
  return to_format(cast(reshape(y, shape), x.dtype()), x.memory_format());
}

Tensor affine_grid(const Tensor& theta, const Sizes& size, Flag align_corners) {
  const RecordOp range("affine_grid", theta);
  ops::check_types<ops::Floating>("affine_grid", theta.dtype());
  const auto dims = std::ssize(size) - 2;
  check<ShapeError>(
      (dims == 2 || dims == 3) && theta.shape() == Shape{size[0], dims, dims + 1},
      "affine_grid: needs theta [N, 2, 3] and a size [N, C, H, W], or [N, 3, 4] and [N, C, D, H, W], "
      "got {} and {}",
      theta, size);
  const Shape spatial(size.begin() + 2, size.end());
  for (const int64_t n : spatial)
    check<ShapeError>(n >= 0, "affine_grid: sizes must not be negative, got {}", size);
  const TensorOptions options{.dtype = theta.dtype(), .device = theta.device()};
  std::vector<Tensor> coordinates;
  for (std::size_t k = spatial.size(); k-- > 0;) {
    Shape line(spatial.size(), 1);
    line[k] = spatial[k];
    coordinates.push_back(
        ops::expand(ops::reshape(centres(spatial[k], align_corners, options), line), spatial));
  }
  coordinates.push_back(ones(spatial, options));
  const Tensor base = stack(coordinates, -1);
  const Tensor points = reshape(base, {base.numel() / (dims + 1), dims + 1});
  Shape shape{size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(dims);
  return reshape(matmul(points, transpose(theta, 1, 2)), shape);
}

}  // namespace pleat
