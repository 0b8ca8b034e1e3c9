#include "pleat/ops/reduce/fold.h"
#include "pleat/ops/reduce/grid_reduce_instances.h"
#include "pleat/ops/reduce/logic_functors.h"

namespace pleat::ops::reduction {

template struct GridReductions<AsIs<bool>, Fold<LogicStep<bool, true>>, Fold<LogicStep<bool, false>>>;

}  // namespace pleat::ops::reduction
