#include "pleat/ops/index/quantile.h"

#include <cmath>

#include "pleat/autograd/autocast.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/shape/shape.h"

namespace pleat {
namespace {

/// The elements along one dimension in order.
struct Sorted {
  Tensor values;
  int64_t dim, length;

  Sorted(const char* op, const Tensor& x, std::optional<int64_t> along)
      : dim(along ? normalize_dim(*along, x.rank(), op) : 0) {
    const Tensor lines = along && x.rank() > 0 ? x : flatten(x);
    length = lines.size(dim);
    check<ShapeError>(length >= 1, "{}: needs at least one element, got {}", op, x);
    values = sort(lines, {.dim = dim}).values;
  }

  Tensor at(int64_t place) const { return narrow(values, dim, place, 1); }
  /// `y`, NaN where one of the elements is.
  Tensor with_nan(const Tensor& y) const {
    if (!is_floating(y.dtype())) return y;
    const Tensor last = at(length - 1);
    return where(isnan(last), last, y);
  }
  /// In the result's shape.
  Tensor shaped(const Tensor& y, const Tensor& x, std::optional<int64_t> along, bool keepdim) const {
    if (!along) return reshape(y, keepdim ? Shape(x.shape().size(), 1) : Shape{});
    return keepdim || x.rank() == 0 ? reshape(y, x.rank() == 0 ? Shape{} : y.shape()) : squeeze(y, dim);
  }
};

}  // namespace

Tensor median(const Tensor& x, MedianOptions options) {
  const RecordOp range("median", x);
  const Sorted sorted("median", x, options.dim);
  return sorted.shaped(sorted.with_nan(sorted.at((sorted.length - 1) / 2)), x, options.dim, options.keepdim);
}

Tensor quantile(const Tensor& any_x, Real q, QuantileOptions options) {
  constexpr const char* op = "quantile";
  check<ValueError>(q >= 0 && q <= 1, "{}: q must be in [0, 1], got {}", op, q);
  const RecordOp range(op, any_x);
  const Tensor x = is_floating(any_x.dtype()) ? autocast_to_float32(any_x) : any_x.to(float32);
  const Sorted sorted(op, x, options.dim);
  const double place = q * static_cast<double>(sorted.length - 1);
  const double low = std::floor(place);
  using enum QuantileInterpolation;
  const double chosen = options.interpolation == lower    ? low
                        : options.interpolation == higher ? std::ceil(place)
                                                          : std::nearbyint(place);
  Tensor y;
  if (options.interpolation == linear || options.interpolation == midpoint) {
    const double part = place == low ? 0 : options.interpolation == midpoint ? 0.5 : place - low;
    y = sorted.at(static_cast<int64_t>(low));
    if (part > 0) y = lerp(y, sorted.at(static_cast<int64_t>(low) + 1), part);
  } else {
    y = sorted.at(static_cast<int64_t>(chosen));
  }
  return sorted.shaped(sorted.with_nan(y), x, options.dim, options.keepdim);
}

}  // namespace pleat
