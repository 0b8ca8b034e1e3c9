#include "pleat/ops/interpolate/interpolate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/interpolate/linear_map.h"

namespace pleat {
namespace {

constexpr const char* op = "interpolate";
/// Keeps a slip of the pen from taking all memory.
constexpr int64_t max_output = int64_t{1} << 24;

/// One element of the result is n / d of the input; with align_corners the distance of two is.
struct Dimension {
  int64_t input, output;
  int64_t n, d;
};

/// The first convergent n / d of a positive factor's continued fraction that rounds to it: what was written,
/// 11 / 10 for 1.1 and 1.1F, though these are more than that. Of a factor below 2^-31 an approximation.
std::pair<int64_t, int64_t> fraction(double factor) {
  int64_t n = 1, d = 0, n_before = 0, d_before = 1;
  double a = factor, b = 1;
  const auto number = static_cast<float>(factor);
  const auto rounds = [&](double quotient) {
    return static_cast<double>(number) == factor ? static_cast<float>(quotient) == number
                                                 : quotient == factor;
  };
  do {
    const double rest = std::fmod(a, b);
    const auto term = static_cast<int64_t>((a - rest) / b);
    n_before = std::exchange(n, term * n + n_before);
    d_before = std::exchange(d, term * d + d_before);
    a = std::exchange(b, rest);
  } while (!rounds(static_cast<double>(n) / static_cast<double>(d)) && d < int64_t{1} << 31);
  return {n, d};
}

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
    Dimension dim{x.shape()[d + 2], 0, 0, 1};
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
    if (!options.align_corners)
      std::tie(dim.d, dim.n) = by_size ? std::pair{dim.output, dim.input} : fraction(factors[d]);
    else if (dim.output > 1)
      dim.n = dim.input - 1, dim.d = dim.output - 1;
    result.push_back(dim);
  }
  return result;
}

/// A point of the input: an element, and the part of the way from there to the next one, in [0, 1).
struct Point {
  int64_t low;
  double part;
};

/// The point half / 2 of the result in the input. In integers, so that what lies on an element does.
Point place(const Dimension& dim, int64_t half) {
  const int64_t d = 2 * dim.d;
  // half is at most 2^25, and the lesser one of n and d some 2^27.
  const int64_t rest = dim.n % d * half;
  return {dim.n / d * half + rest / d, static_cast<double>(rest % d) / static_cast<double>(d)};
}

/// What is half an element before a point.
Point before(const Point& point) {
  return point.part < 0.5 ? Point{point.low - 1, point.part + 0.5} : Point{point.low, point.part - 0.5};
}

/// The weight of an element at a distance from the point.
double linear_weight(double distance) { return std::max(1 - std::abs(distance), 0.0); }

double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/// Adds to the weight of an element; those at the edges stand for all beyond.
void add_bounded(ops::SparseRows& rows, int64_t at, double weight) {
  at = std::clamp<int64_t>(at, 0, rows.inputs - 1);
  const bool again = std::ssize(rows.index) > rows.first.back() && rows.index.back() == at;
  again ? void(rows.weight.back() += weight) : rows.add_tap(at, weight);
}

void add_linear(ops::SparseRows& rows, const Point& point) {
  if (point.part == 0) return add_bounded(rows, point.low, 1);
  add_bounded(rows, point.low, 1 - point.part);
  add_bounded(rows, point.low + 1, point.part);
}

void add_cubic(ops::SparseRows& rows, const Point& point) {
  for (int k = -1; k <= 2; ++k)
    if (const double weight = cubic_weight(point.part - k, -0.75); weight != 0)
      add_bounded(rows, point.low + k, weight);
}

/// From the centre of output o to that of element i, in elements of the coarser one of both.
double distance(const Dimension& dim, int64_t i, int64_t o) {
  return static_cast<double>((2 * i + 1) * dim.d - (2 * o + 1) * dim.n) /
         (2 * static_cast<double>(std::max(dim.n, dim.d)));
}

/// Around the centre of output o, over as many elements as it covers.
void add_smoothed(ops::SparseRows& rows, const Dimension& dim, int64_t o, bool is_cubic) {
  const int64_t reach = (is_cubic ? 2 : 1) * (dim.n / dim.d + 1) + 1;
  const int64_t middle = place(dim, 2 * o + 1).low;
  const int64_t end = std::min(middle + reach + 1, dim.input);
  double sum = 0;
  const std::size_t first = rows.weight.size();
  for (int64_t i = std::max<int64_t>(middle - reach, 0); i < end; ++i) {
    const double at = distance(dim, i, o);
    const double weight = is_cubic ? cubic_weight(at, -0.5) : linear_weight(at);
    if (weight != 0) rows.add_tap(i, weight);
    sum += weight;
  }
  for (std::size_t k = first; k < rows.weight.size() && sum != 0; ++k) rows.weight[k] /= sum;
}

void add_area(ops::SparseRows& rows, const Dimension& dim, int64_t o) {
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

ops::SparseRows rows_of(const Dimension& dim, const InterpolateOptions& options) {
  ops::check_rows(op, dim.output, most_taps(dim, options));
  const bool is_cubic = options.mode == Interpolation::cubic;
  ops::SparseRows rows;
  rows.inputs = dim.input;
  for (int64_t o = 0; o < dim.output; ++o) {
    switch (options.mode) {
      case Interpolation::nearest:
        add_bounded(rows, place(dim, 2 * o).low, 1);
        break;
      case Interpolation::nearest_exact:
        add_bounded(rows, place(dim, 2 * o + 1).low, 1);
        break;
      case Interpolation::area:
        add_area(rows, dim, o);
        break;
      default:
        if (options.antialias)
          add_smoothed(rows, dim, o, is_cubic);
        else
          (is_cubic ? add_cubic : add_linear)(
              rows, options.align_corners ? place(dim, 2 * o) : before(place(dim, 2 * o + 1)));
    }
    rows.end_row(1);
  }
  return rows;
}

/// What `interpolate` does to x.
ops::LinearMap map_of(const Tensor& x, const InterpolateOptions& options) {
  check<ShapeError>(x.rank() >= 3 && x.rank() <= 5,
                    "{}: input must be [N, C, spatial...] with 1 to 3 spatial dimensions, got {}", op, x);
  const bool between = options.mode == Interpolation::linear || options.mode == Interpolation::cubic;
  check<ValueError>(!options.align_corners || between,
                    "{}: align_corners goes with the linear mode only, or the cubic one", op);
  check<ValueError>(!options.antialias || between,
                    "{}: antialias goes with the linear and the cubic mode only", op);
  ops::LinearMap map;
  for (const Dimension& dim : dimensions(x, options)) map.dims.push_back(rows_of(dim, options));
  return map;
}

/// Of a spatial dimension; 0: there is none, or sizes were given.
double factor_of(const InterpolateOptions& options, std::size_t dim) {
  const std::vector<double>& factors = options.scale_factor.values();
  return factors.size() == 1 ? factors[0] : dim < factors.size() ? factors[dim] : 0;
}

/// Whether a step of the result is input size / result size; a factor that gives no whole size has another.
bool goes_by_sizes(const Tensor& x, const InterpolateOptions& options) {
  for (std::size_t d = 2; d < x.shape().size(); ++d) {
    const double size = static_cast<double>(x.shape()[d]) * factor_of(options, d - 2);
    if (size != std::floor(size)) return false;
  }
  return true;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  const ops::LinearMap map = map_of(x, options);
  const Call call(op, traced_operands(x, map),
                  {{"mode", static_cast<int64_t>(options.mode)},
                   {"align_corners", Flag(options.align_corners)},
                   {"antialias", Flag(options.antialias)},
                   {"by_sizes", Flag(goes_by_sizes(x, options))},
                   {"factor0", factor_of(options, 0)},
                   {"factor1", factor_of(options, 1)},
                   {"factor2", factor_of(options, 2)}});
  return call.gives(linear_map(op, map, x, {.implementation = options.implementation}));
}

}  // namespace pleat
