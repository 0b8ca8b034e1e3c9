#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/elementwise/grid_map_instances.h"

namespace pleat::ops {

template struct GridMaps<Numbers, Same, 2, Plus, Minus, Times>;
template struct GridMaps<Floating, Same, 2, Over>;
template struct GridMaps<Numbers, Same, 1, Negate>;

}  // namespace pleat::ops
