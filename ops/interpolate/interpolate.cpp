#include "pleat/ops/interpolate/interpolate.h"

#include <algorithm>
#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/ops/interpolate/map.h"

namespace pleat::ops {
namespace {

constexpr const char* op = "interpolate";
/// Keeps a slip of the pen from taking all memory.
constexpr int64_t max_output = int64_t{1} << 24;

struct Dimension {
  int64_t input, output;
  double step;  ///< of the input for one of the output
};

std::vector<Dimension> dimensions(const Tensor& x, const InterpolateOptions& options) {
  const auto dims = static_cast<std::size_t>(x.rank() - 2);
  const bool by_size = !options.size.values().empty();
  std::vector<double> factors = options.scale_factor.values();
  check<ValueError>(by_size == factors.empty(), "{}: needs either size or scale_factor, got {}", op,
                    by_size ? "both" : "neither");
  std::vector<int64_t> sizes;
  if (by_size) sizes = options.size.expand(x.rank() - 2, op, "size");
  if (factors.size() == 1) factors.assign(dims, factors[0]);
  check<ShapeError>(by_size || factors.size() == dims, "{}: scale_factor needs 1 or {} values, got {}", op,
                    dims, factors.size());
  std::vector<Dimension> result;
  for (std::size_t d = 0; d < dims; ++d) {
    Dimension dim{x.shape()[d + 2], 0, 0};
    check<ShapeError>(dim.input >= 1, "{}: spatial dimension {} of {} is empty", op, d, x);
    if (by_size) {
      dim.output = sizes[d];
    } else {
      check<ValueError>(factors[d] > 0 && std::isfinite(factors[d]),
                        "{}: scale_factor must be above 0, got {}", op, factors[d]);
      const double output = std::floor(static_cast<double>(dim.input) * factors[d]);
      check<ShapeError>(output <= static_cast<double>(max_output),
                        "{}: {} elements in a dimension are too many", op, output);
      dim.output = static_cast<int64_t>(output);
    }
    check<ShapeError>(dim.output >= 1 && dim.output <= max_output,
                      "{}: the result needs sizes from 1 to {}, got {} in spatial dimension {}", op,
                      max_output, dim.output, d);
    if (options.align_corners)
      dim.step =
          dim.output > 1 ? static_cast<double>(dim.input - 1) / static_cast<double>(dim.output - 1) : 0;
    else
      dim.step = by_size ? static_cast<double>(dim.input) / static_cast<double>(dim.output) : 1 / factors[d];
    result.push_back(dim);
  }
  return result;
}

SparseRows rows_of(const Dimension& dim, const InterpolateOptions& options) {
  check_rows(op, dim.output, 2);
  SparseRows rows;
  rows.inputs = dim.input;
  for (int64_t o = 0; o < dim.output; ++o) {
    const auto at = static_cast<double>(o);
    double place = at * dim.step;
    if (options.mode == Interpolation::linear && !options.align_corners)
      place = std::max((at + 0.5) * dim.step - 0.5, 0.0);
    const int64_t low = std::min(static_cast<int64_t>(place), dim.input - 1);
    const int64_t high = std::min(low + 1, dim.input - 1);
    const double part = std::min(place - static_cast<double>(low), 1.0);
    if (options.mode == Interpolation::nearest || high == low || part == 0) {
      rows.add_tap(low, 1);
    } else {
      rows.add_tap(low, 1 - part);
      rows.add_tap(high, part);
    }
    rows.end_row(1);
  }
  return rows;
}

}  // namespace

LinearMap interpolation_map(const Tensor& x, const InterpolateOptions& options) {
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  check<ValueError>(!options.align_corners || options.mode == Interpolation::linear,
                    "{}: align_corners goes with the linear mode only", op);
  LinearMap map;
  for (const Dimension& dim : dimensions(x, options)) map.dims.push_back(rows_of(dim, options));
  return map;
}

}  // namespace pleat::ops
