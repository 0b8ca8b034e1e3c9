#include "pleat/ops/reduce/grid_reduce_instances.h"
#include "pleat/ops/reduce/moments_functors.h"

namespace pleat::ops::reduction {

template struct GridReductions<VarianceAndMean<float>, Moments<float>>;
template struct GridReductions<VarianceAndMean<double>, Moments<double>>;

}  // namespace pleat::ops::reduction
