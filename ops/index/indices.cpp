#include "pleat/ops/index/indices.h"

#include <algorithm>

#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/core/grid.h"
#include "pleat/ops/index/bounds.h"

namespace pleat::ops {

Tensor integer_indices(const char* op, const Tensor& index) {
  check<DTypeError>(!is_floating(index.dtype()) && index.dtype() != boolean,
                    "{}: indices must be integers, got {}", op, index.dtype());
  return to_format(cast(index, int64), MemoryFormat::contiguous);
}

Tensor checked_indices(const char* op, const Tensor& index, int64_t dim, const Shape& shape) {
  const Tensor result = integer_indices(op, index);
  const int64_t size = shape[static_cast<std::size_t>(dim)];
  if (uses_grid(result.device()) && all_within(op, result, 0, size)) return result;
  const Tensor here = to_device(result, Device());  // what is left for a GPU is to find the wrong one
  const int64_t* const values = here.data<int64_t>();
  const int64_t n = result.numel();
  // Negative numbers are large as unsigned ones. The plain loop over all is faster than one that stops.
  const auto limit = static_cast<uint64_t>(size);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += static_cast<uint64_t>(values[i]) >= limit ? 1 : 0;
  if (wrong == 0) return result;
  const int64_t* const first = std::find_if(
      values, values + n, [limit](int64_t value) { return static_cast<uint64_t>(value) >= limit; });
  int64_t place = first - values;
  Shape at(index.shape().size());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = place % index.shape()[d];
    place /= index.shape()[d];
  }
  fail<IndexError>("{}: index {} at {} is outside [0, {}), dimension {} of {}", op, *first, at, size, dim,
                   shape);
}

std::size_t index_dim(const char* op, int64_t dim, const Tensor& x) {
  check<ShapeError>(x.rank() > 0, "{}: a tensor of rank 0 has no elements to choose from", op);
  return static_cast<std::size_t>(normalize_dim(dim, x.rank(), op));
}

}  // namespace pleat::ops
