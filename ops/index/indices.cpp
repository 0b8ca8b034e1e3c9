#include "pleat/ops/index/indices.h"

#include <algorithm>
#include <atomic>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index_cuda.h"

namespace pleat::ops {

Tensor integer_indices(const char* op, const Tensor& index) {
  check<DTypeError>(!is_floating(index.dtype()) && index.dtype() != boolean,
                    "{}: indices must be integers, got {}; convert them with to(int64), or select by a bool "
                    "mask with masked_select",
                    op, index.dtype());
  return to_format(cast(index, int64), MemoryFormat::contiguous);
}

namespace {

/// Whether all of them lie in [low, high).
bool within(const char* op, const Tensor& indices, int64_t low, int64_t high) {
  if constexpr (with_cuda)
    if (indices.device().is_cuda()) return all_within(op, indices, low, high);
  const int64_t* const values = indices.data<int64_t>();
  const int64_t n = indices.numel();
  // As unsigned numbers those below `low` are large. The plain loop over all is faster than one that stops.
  const auto first = static_cast<uint64_t>(low);
  const uint64_t size = static_cast<uint64_t>(high) - first;
  std::atomic<bool> all = true;
  parallel_for(0, n, 65536, [&](int64_t begin, int64_t end) {
    int64_t wrong = 0;
    for (int64_t i = begin; i < end; ++i) wrong += static_cast<uint64_t>(values[i]) - first >= size ? 1 : 0;
    if (wrong != 0) all = false;
  });
  return all;
}

[[noreturn]] void fail_index(const char* op, const Tensor& indices, int64_t low, int64_t dim,
                             const Shape& shape) {
  const int64_t size = shape[static_cast<std::size_t>(dim)];
  const Tensor here = to_device(indices, Device());
  const int64_t* const values = here.data<int64_t>();
  const int64_t* const wrong = std::find_if(values, values + here.numel(),
                                            [&](int64_t value) { return value < low || value >= size; });
  int64_t place = wrong - values;
  Shape at(indices.shape().size());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = place % indices.shape()[d];
    place /= indices.shape()[d];
  }
  fail<IndexError>("{}: index {} at {} is outside [{}, {}), dimension {} of {}", op, *wrong, at, low, size,
                   dim, shape);
}

}  // namespace

Tensor checked_indices(const char* op, const Tensor& index, int64_t dim, const Shape& shape) {
  const Tensor result = integer_indices(op, index);
  const bool is_known = result.device().is_cuda() && IndicesAreChecked::current() != nullptr;
  const int64_t size = shape[static_cast<std::size_t>(dim)];
  if (!is_known && !within(op, result, 0, size)) fail_index(op, result, 0, dim, shape);
  return result;
}

Tensor checked_places(const char* op, const Tensor& index, int64_t dim, const Shape& shape) {
  const Tensor result = integer_indices(op, index);
  const int64_t size = shape[static_cast<std::size_t>(dim)];
  if constexpr (with_cuda)
    if (result.device().is_cuda()) {
      using Sign = IndicesAreChecked::Sign;
      if (const Sign* const sign = IndicesAreChecked::current())
        return *sign == Sign::any ? from_start(op, result, size) : result;
      const FoundIndices found = find_indices(op, {{result, -size, size}})[0];
      if (found.outside) fail_index(op, result, -size, dim, shape);
      return found.negative ? from_start(op, result, size) : result;
    }
  if (within(op, result, 0, size)) return result;
  if (!within(op, result, -size, size)) fail_index(op, result, -size, dim, shape);
  return where(result < 0, result + size, result);
}

std::vector<Tensor> checked_places(const char* op, const std::vector<Tensor>& indices, const Shape& shape) {
  for (const Tensor& index : indices)
    check<DeviceError>(index.device() == indices[0].device(),
                       "{}: all indices must be on one device, got {} and {}", op, indices[0].device(),
                       index.device());
  std::vector<Tensor> results;
  if constexpr (with_cuda)
    if (indices[0].device().is_cuda() && IndicesAreChecked::current() == nullptr) {
      // One look at all of them: the host waits once.
      std::vector<IndexRange> ranges;
      for (const Tensor& index : indices) {
        const int64_t size = shape[ranges.size()];
        ranges.push_back({integer_indices(op, index), -size, size});
      }
      const std::vector<FoundIndices> found = find_indices(op, ranges);
      for (std::size_t d = 0; d < ranges.size(); ++d) {
        const auto& [index, low, size] = ranges[d];
        if (found[d].outside) fail_index(op, index, low, static_cast<int64_t>(d), shape);
        results.push_back(found[d].negative ? from_start(op, index, size) : index);
      }
      return results;
    }
  for (const Tensor& index : indices)
    results.push_back(checked_places(op, index, static_cast<int64_t>(results.size()), shape));
  return results;
}

std::size_t index_dim(const char* op, int64_t dim, const Tensor& x, const Tensor& index) {
  check<DeviceError>(index.device() == x.device(), "{}: the index must be on {} like the tensor, got {}", op,
                     x.device(), index.device());
  return static_cast<std::size_t>(normalize_dim(dim, x.rank(), op));
}

Tensor at_least_1d(const Tensor& x) { return x.rank() > 0 ? x : x.as_strided({1}, {1}, x.offset()); }

}  // namespace pleat::ops
