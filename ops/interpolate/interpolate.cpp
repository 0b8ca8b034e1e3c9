#include "pleat/ops/interpolate/interpolate.h"

#include <algorithm>
#include <cmath>

#include "pleat/core/base/checked_math.h"
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

/// The weight of an element at a distance from the point.
double linear_weight(double distance) { return std::max(1 - std::abs(distance), 0.0); }

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/// Adds to the weight of an element; those at the edges stand for all beyond.
void add_bounded(SparseRows& rows, int64_t at, double weight) {
  at = std::clamp<int64_t>(at, 0, rows.inputs - 1);
  const bool again = std::ssize(rows.index) > rows.first.back() && rows.index.back() == at;
  again ? void(rows.weight.back() += weight) : rows.add_tap(at, weight);
}

void add_nearest(SparseRows& rows, double place) {
  rows.add_tap(std::min(static_cast<int64_t>(place), rows.inputs - 1), 1);
}

void add_linear(SparseRows& rows, double place) {
  const int64_t low = std::min(static_cast<int64_t>(place), rows.inputs - 1);
  const int64_t high = std::min(low + 1, rows.inputs - 1);
  const double part = std::min(place - static_cast<double>(low), 1.0);
  if (high == low || part == 0) return rows.add_tap(low, 1);
  rows.add_tap(low, 1 - part);
  rows.add_tap(high, part);
}

void add_cubic(SparseRows& rows, double place) {
  const double low = std::floor(place);
  for (int k = -1; k <= 2; ++k)
    add_bounded(rows, static_cast<int64_t>(low) + k, cubic_weight(place - low - k, -0.75));
}

/// Around the centre of output o, over as many elements as the step has.
void add_smoothed(SparseRows& rows, const Dimension& dim, int64_t o, bool is_cubic) {
  const double centre = (static_cast<double>(o) + 0.5) * dim.step;
  const double stretch = std::max(dim.step, 1.0);
  const double reach = (is_cubic ? 2 : 1) * stretch;
  const int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - reach + 0.5), 0);
  const int64_t end = std::min<int64_t>(static_cast<int64_t>(centre + reach + 0.5), dim.input);
  double sum = 0;
  const std::size_t first = rows.weight.size();
  for (int64_t i = begin; i < end; ++i) {
    const double distance = (static_cast<double>(i) + 0.5 - centre) / stretch;
    rows.add_tap(i, is_cubic ? cubic_weight(distance, -0.5) : linear_weight(distance));
    sum += rows.weight.back();
  }
  for (std::size_t k = first; k < rows.weight.size() && sum != 0; ++k) rows.weight[k] /= sum;
}

void add_area(SparseRows& rows, const Dimension& dim, int64_t o) {
  const int64_t begin = o * dim.input / dim.output;
  const int64_t end = ceil_div((o + 1) * dim.input, dim.output);
  for (int64_t i = begin; i < end; ++i) rows.add_tap(i, 1 / static_cast<double>(end - begin));
}

/// The most elements that one of the result is made of.
int64_t most_taps(const Dimension& dim, const InterpolateOptions& options) {
  const int64_t step = options.antialias || options.mode == Interpolation::area
                           ? std::min(dim.input, checked_add(dim.input / dim.output, 2, op))
                           : 1;
  return checked_multiply(options.mode == Interpolation::cubic ? 4 : 2, step, op);
}

SparseRows rows_of(const Dimension& dim, const InterpolateOptions& options) {
  check_rows(op, dim.output, most_taps(dim, options));
  const bool is_cubic = options.mode == Interpolation::cubic;
  SparseRows rows;
  rows.inputs = dim.input;
  for (int64_t o = 0; o < dim.output; ++o) {
    const auto at = static_cast<double>(o);
    const double centre = options.align_corners ? at * dim.step : (at + 0.5) * dim.step - 0.5;
    switch (options.mode) {
      case Interpolation::nearest:
        add_nearest(rows, at * dim.step);
        break;
      case Interpolation::nearest_exact:
        add_nearest(rows, (at + 0.5) * dim.step);
        break;
      case Interpolation::area:
        add_area(rows, dim, o);
        break;
      default:
        if (options.antialias)
          add_smoothed(rows, dim, o, is_cubic);
        else
          is_cubic ? add_cubic(rows, centre) : add_linear(rows, std::max(centre, 0.0));
    }
    rows.end_row(1);
  }
  return rows;
}

}  // namespace

LinearMap interpolation_map(const Tensor& x, const InterpolateOptions& options) {
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  const bool between = options.mode == Interpolation::linear || options.mode == Interpolation::cubic;
  check<ValueError>(!options.align_corners || between,
                    "{}: align_corners goes with the linear mode only, or the cubic one", op);
  check<ValueError>(!options.antialias || between,
                    "{}: antialias goes with the linear and the cubic mode only", op);
  LinearMap map;
  for (const Dimension& dim : dimensions(x, options)) map.dims.push_back(rows_of(dim, options));
  return map;
}

}  // namespace pleat::ops
