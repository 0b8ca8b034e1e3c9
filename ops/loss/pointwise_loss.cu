#include "pleat/ops/elementwise/grid_map_instances.h"
#include "pleat/ops/loss/pointwise_functors.h"

namespace pleat::ops {

template struct GridMaps<Floating, Same, 2, SquaredDistance, AbsoluteDistance, SmoothDistance, HuberDistance>;
template struct GridMaps<Floating, Same, 3, SquaredDistanceBackward, AbsoluteDistanceBackward,
                         SmoothDistanceBackward, HuberDistanceBackward, BinaryCrossEntropy>;
template struct GridMaps<Floating, Same, 4, BinaryCrossEntropyBackward>;

}  // namespace pleat::ops
