#include "pleat/autograd/functions/interpolate.h"

#include "pleat/autograd/functions/linear_map.h"
#include "pleat/ops/interpolate/map.h"

namespace pleat {

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  return linear_map("interpolate", ops::interpolation_map(x, options), x,
                    {.implementation = options.implementation});
}

}  // namespace pleat
