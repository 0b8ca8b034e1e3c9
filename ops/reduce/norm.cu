#include "pleat/ops/reduce/grid_reduce_instances.h"
#include "pleat/ops/reduce/norm_functors.h"

namespace pleat::ops::reduction {

template struct GridReductions<Root<float>, Fold<PowerStep<float, AnyPower>>>;
template struct GridReductions<Root<double>, Fold<PowerStep<double, AnyPower>>>;
template struct GridReductions<AsIs<float>, Fold<MagnitudeStep<float, true>>,
                               Fold<MagnitudeStep<float, false>>>;
template struct GridReductions<AsIs<double>, Fold<MagnitudeStep<double, true>>,
                               Fold<MagnitudeStep<double, false>>>;

}  // namespace pleat::ops::reduction
