#include "pleat/tests/dist/world.h"

#include "pleat/ops/shape/shape.h"

namespace pleat::test {

Tensor part_of(const Tensor& batch, int64_t dim) {
  const int64_t samples = batch.size(dim), ranks = world().size(), rank = world().rank();
  const int64_t first = samples * rank / ranks, last = samples * (rank + 1) / ranks;
  return narrow(batch, dim, first, last - first);
}

}  // namespace pleat::test
