#include "pleat/core/ramp.h"

namespace pleat {

template <class V>
void ramp_on_grid(const char* op, Device device, int64_t n, const RampElement<V>& functor) {
  grid_for(op, device, n, functor);
}

template void ramp_on_grid(const char*, Device, int64_t, const RampElement<int64_t>&);
template void ramp_on_grid(const char*, Device, int64_t, const RampElement<double>&);

}  // namespace pleat
