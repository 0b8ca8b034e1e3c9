#include "pleat/ops/elementwise/grid_map_instances.h"
#include "pleat/ops/elementwise/logic_functors.h"

namespace pleat::ops {

template struct GridMaps<Truths, Same, 2, And, Or, Xor>;
template struct GridMaps<Truths, Same, 1, Not>;

}  // namespace pleat::ops
