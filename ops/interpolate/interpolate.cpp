#include "pleat/ops/interpolate/interpolate.h"

#include <cmath>
#include <vector>

#include "pleat/autograd/call.h"
#include "pleat/ops/interpolate/linear_map.h"
#include "pleat/ops/interpolate/map.h"

namespace pleat {
namespace {

/// Whether a step of the result is input size / result size; a factor that gives no whole size has another.
bool goes_by_sizes(const Tensor& x, const InterpolateOptions& options) {
  const std::vector<double>& factors = options.scale_factor.values();
  for (std::size_t d = 2; d < x.shape().size() && !factors.empty(); ++d) {
    const double size = static_cast<double>(x.shape()[d]) * factors[factors.size() == 1 ? 0 : d - 2];
    if (size != std::floor(size)) return false;
  }
  return true;
}

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  const ops::LinearMap map = ops::interpolation_map(x, options);
  const Call call("interpolate", traced_operands(x, map),
                  {{"mode", static_cast<int64_t>(options.mode)},
                   {"align_corners", Flag(options.align_corners)},
                   {"antialias", Flag(options.antialias)},
                   {"by_sizes", Flag(goes_by_sizes(x, options))}});
  return call.gives(linear_map("interpolate", map, x, {.implementation = options.implementation}));
}

}  // namespace pleat
