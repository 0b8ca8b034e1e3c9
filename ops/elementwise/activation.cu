#include "pleat/ops/elementwise/activation_functors.h"
#include "pleat/ops/elementwise/grid_map_instances.h"

namespace pleat::ops {

template struct GridMaps<Numbers, Same, 1, Relu>;
template struct GridMaps<Floating, Same, 1, LeakyRelu, Elu, Sigmoid, LogSigmoid, Softplus, Gelu, GeluTanh,
                         Silu, Mish, Hardswish>;
template struct GridMaps<Floating, Same, 2, ReluBackward, LeakyReluBackward, EluBackward, SigmoidBackward,
                         LogSigmoidBackward>;
template struct GridMaps<Floating, Same, 2, SoftplusBackward, GeluBackward, GeluTanhBackward, SiluBackward,
                         MishBackward, HardswishBackward>;

}  // namespace pleat::ops
