#include "pleat/ops/elementwise/grid_map_instances.h"
#include "pleat/ops/elementwise/select_functors.h"

namespace pleat::ops {

template struct GridMaps<Stored, Same, 3, Where>;
template struct GridMaps<Floating, Same, 2, MaskedScale>;

}  // namespace pleat::ops
