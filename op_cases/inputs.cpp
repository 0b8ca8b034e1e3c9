#include "pleat/op_cases/inputs.h"

namespace pleat::test {
namespace {

Tensor filled(const Shape& shape, uint64_t seed, const std::function<void(const Tensor&, Generator&)>& fill) {
  Generator generator(seed);
  const Tensor x = empty(shape, {.dtype = float64, .device = Device()});
  fill(x, generator);
  return x;
}

}  // namespace

Tensor normal(const Shape& shape, uint64_t seed) {
  return filled(shape, seed, [](const Tensor& x, Generator& g) { fill_normal_(x, 0, 1, g); });
}

Tensor uniform(const Shape& shape, double low, double high, uint64_t seed) {
  return filled(shape, seed, [&](const Tensor& x, Generator& g) { fill_uniform_(x, low, high, g); });
}

Tensor integers(const Shape& shape, int64_t low, int64_t high, uint64_t seed) {
  Generator generator(seed);
  return randint(low, high, shape, Device(), generator);
}

Tensor constant(const Tensor& x, const Tensor& like) {
  return ops::to_device(ops::cast(x, like.dtype()), like.device());
}

Tensor coins(const Shape& shape, uint64_t seed) {
  Generator generator(seed);
  return bernoulli(0.5, shape, Device(), generator);
}

}  // namespace pleat::test
