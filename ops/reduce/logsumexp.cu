#include "pleat/ops/reduce/grid_reduce_instances.h"
#include "pleat/ops/reduce/logsumexp_functors.h"

namespace pleat::ops::reduction {

template struct GridReductions<LogOfSum<float>, LogSumExp<float>>;
template struct GridReductions<LogOfSum<double>, LogSumExp<double>>;

}  // namespace pleat::ops::reduction
