#include "pleat/ops/elementwise/compare_functors.h"
#include "pleat/ops/elementwise/grid_map_instances.h"

namespace pleat::ops {

template struct GridMaps<Ordered, Truth, 2, Equal, Unequal, Less, AtMost>;
template struct GridMaps<Floating, Truth, 1, IsNan, IsInfinite, IsFinite>;
template struct GridMaps<Numbers, Same, 2, SameElement>;
template struct GridMaps<Doubles, Truth, 2, Close>;

}  // namespace pleat::ops
