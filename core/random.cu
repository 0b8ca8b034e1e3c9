#include "pleat/core/grid.h"
#include "pleat/core/random_functors.h"

namespace pleat {

template <class Functor>
void random_on_grid(const char* op, Device device, int64_t n, const Functor& functor) {
  grid_for(op, device, n, functor);
}

template void random_on_grid(const char*, Device, int64_t, const UniformElement<float>&);
template void random_on_grid(const char*, Device, int64_t, const UniformElement<double>&);
template void random_on_grid(const char*, Device, int64_t, const NormalElement<float>&);
template void random_on_grid(const char*, Device, int64_t, const NormalElement<double>&);
template void random_on_grid(const char*, Device, int64_t, const IntegerElement&);
template void random_on_grid(const char*, Device, int64_t, const BernoulliBlock&);

}  // namespace pleat
