#include "pleat/ops/index/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/elementwise.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/lines.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

template <class T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return static_cast<float>(value);
  else
    return value;
}

template <class K>
bool less(K a, K b) {
  if constexpr (std::is_floating_point_v<K>)
    return std::isnan(b) ? !std::isnan(a) : a < b;
  else
    return a < b;
}

/// Sorts lines of x into `values` and `indices`, the first k elements of each.
void sort_lines(const char* op, const Tensor& x, std::size_t dim, bool descending, const Tensor& values,
                const Tensor& indices) {
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return sort_lines_cuda(op, x, dim, descending, values, indices);
  const int64_t n = x.shape()[dim];
  const int64_t k = values.shape()[dim];
  const int64_t x_step = x.strides()[dim];
  const int64_t value_step = values.strides()[dim];
  const int64_t index_step = indices.strides()[dim];
  if (k == 0) return;
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    using Key = decltype(key_of(T{}));
    struct Entry {
      Key key;
      int64_t index;
    };
    if (x.numel() > 0) check_host_memory(op, checked_multiply(n, sizeof(Entry), op));
    const auto before = [descending](const Entry& a, const Entry& b) {
      if (less(a.key, b.key)) return !descending;
      if (less(b.key, a.key)) return descending;
      return a.index < b.index;
    };
    for_each_line<3>(x.shape(), dim, {x.strides(), values.strides(), indices.strides()},
                     [&](const auto& start) {
                       const T* const from = x.data<T>() + start[0];
                       std::vector<Entry> entries(static_cast<std::size_t>(n));
                       for (int64_t i = 0; i < n; ++i)
                         entries[static_cast<std::size_t>(i)] = {key_of(from[i * x_step]), i};
                       if (k == n)
                         std::sort(entries.begin(), entries.end(), before);
                       else
                         std::partial_sort(entries.begin(), entries.begin() + k, entries.end(), before);
                       for (int64_t i = 0; i < k; ++i) {
                         const int64_t index = entries[static_cast<std::size_t>(i)].index;
                         values.data<T>()[start[1] + i * value_step] = from[index * x_step];
                         indices.data<int64_t>()[start[2] + i * index_step] = index;
                       }
                     });
  });
}

}  // namespace

ValuesIndices sort(const Tensor& x, SortOptions options) {
  const RecordOp range("sort", x);
  const auto dim = static_cast<std::size_t>(normalize_dim(options.dim, x.rank(), "sort"));
  const std::array inputs = {x};
  const ValuesIndices result = {empty_like(x), empty_as(inputs, x.shape(), int64)};
  if (x.rank() == 0)
    sort_lines("sort", view(x, {1}), 0, options.descending, view(result.values, {1}),
               view(result.indices, {1}));
  else
    sort_lines("sort", x, dim, options.descending, result.values, result.indices);
  return result;
}

Tensor argsort(const Tensor& x, SortOptions options) { return sort(x, options).indices; }

ValuesIndices topk(const Tensor& x, Integer k, TopkOptions options) {
  const RecordOp range("topk", x);
  if (x.rank() == 0) {
    normalize_dim(options.dim, 0, "topk");
    check<IndexError>(k == 0 || k == 1, "topk: k = {} is outside [0, 1] for a tensor of rank 0", k);
    return sort(x);
  }
  const auto dim = static_cast<std::size_t>(normalize_dim(options.dim, x.rank(), "topk"));
  check<IndexError>(k >= 0 && k <= x.shape()[dim], "topk: k = {} is outside [0, {}], dimension {} of {}", k,
                    x.shape()[dim], dim, x.shape());
  Shape shape = x.shape();
  shape[dim] = k;
  const ValuesIndices result = {empty(shape, {.dtype = x.dtype(), .device = x.device()}),
                                empty(shape, {.dtype = int64, .device = x.device()})};
  sort_lines("topk", x, dim, options.largest, result.values, result.indices);
  return result;
}

}  // namespace pleat::ops
