#include "pleat/ops/sample/grid_sample.h"

#include <algorithm>

#include "pleat/autograd/call.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/sample/pixel_taps.h"
#include "pleat/ops/sample/sample_points.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

constexpr const char* op = "grid_sample";

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
  ops::check_plane(op, x);
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
  check_operands(x, grid, options);
  const ops::PlaceRule rule{.sizes = Shape(x.shape().begin() + 2, x.shape().end()),
                            .mode = options.mode,
                            .padding = options.padding,
                            .align_corners = options.align_corners};
  const Shape points(grid.shape().begin() + 1, grid.shape().end() - 1);
  int64_t places = 1;
  for (const int64_t size : points) places = checked_multiply(places, size, op);
  const Call call(op, {x, grid});
  const Tensor at =
      reshape(cast(grid, compute_dtype(x.dtype())), {x.size(0), places, std::ssize(rule.sizes)});
  return call.gives(sample_points(op, x, at, rule, points));
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
  check<ShapeError>(std::all_of(size.begin() + 1, size.end(), [](int64_t n) { return n >= 1; }),
                    "affine_grid: channels and pixels must be at least 1, got a size of {}", size);
  const Shape spatial(size.begin() + 2, size.end());
  const TensorOptions options{.dtype = theta.dtype(), .device = theta.device()};
  std::vector<Tensor> coordinates;
  for (std::size_t k = spatial.size(); k-- > 0;) {
    Shape line(spatial.size(), 1);
    line[k] = spatial[k];
    coordinates.push_back(expand(reshape(centres(spatial[k], align_corners, options), line), spatial));
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
