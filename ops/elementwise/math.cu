#include "pleat/ops/elementwise/grid_map_instances.h"
#include "pleat/ops/elementwise/math_functors.h"

namespace pleat::ops {

template struct GridMaps<Floating, Same, 1, Exp, Expm1, Log, Log1p, Log2, Log10, Sqrt, Rsqrt, Reciprocal,
                         ReciprocalSquare, Cube>;
template struct GridMaps<Floating, Same, 1, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Erf>;
template struct GridMaps<Floating, Same, 1, Floor, Ceil, Round, Trunc, PowerOf, Square>;
template struct GridMaps<Numbers, Same, 1, Abs, Sign, Square, Clamp>;
template struct GridMaps<Floating, Same, 2, Atan2, TanhBackward, ClampBackward, HardtanhBackward>;
template struct GridMaps<Numbers, Same, 2, Power, Remainder>;
template struct GridMaps<Ordered, Same, 2, Maximum, Minimum>;
template struct GridMaps<Floating, Same, 3, Lerp>;

}  // namespace pleat::ops
