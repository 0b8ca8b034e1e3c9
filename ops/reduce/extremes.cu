#include "pleat/ops/reduce/extremes_functors.h"
#include "pleat/ops/reduce/grid_reduce_instances.h"

namespace pleat::ops::reduction {

template struct GridReductions<AsIs<float>, Fold<ExtremeStep<float, true>>, Fold<ExtremeStep<float, false>>>;
template struct GridReductions<AsIs<double>, Fold<ExtremeStep<double, true>>,
                               Fold<ExtremeStep<double, false>>>;
template struct GridReductions<AsIs<int64_t>, Fold<ExtremeStep<int64_t, true>>,
                               Fold<ExtremeStep<int64_t, false>>>;
template struct GridReductions<ValueAndIndex<float>, Arg<float, true>, Arg<float, false>>;
template struct GridReductions<ValueAndIndex<double>, Arg<double, true>, Arg<double, false>>;
template struct GridReductions<ValueAndIndex<int64_t>, Arg<int64_t, true>, Arg<int64_t, false>>;

}  // namespace pleat::ops::reduction
