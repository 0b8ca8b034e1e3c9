#include <algorithm>
#include <numeric>
#include <optional>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/memory/host_memory.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// A tensor as the row-major one [outer, n, inner] around one dimension, in the order of its dimensions in
/// memory.
struct Around {
  std::vector<int64_t> order;    // that makes it row-major
  std::vector<int64_t> inverse;  // and back
  Shape shape;                   // in this order
  std::size_t at = 0;            // where the dimension is in it
  int64_t outer = 1;
  int64_t inner = 1;

  Around(const Tensor& x, std::size_t dim) : order(x.shape().size()), inverse(order.size()) {
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto index = [](int64_t d) { return static_cast<std::size_t>(d); };
    if (x.is_dense() && !x.is_contiguous())
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return x.strides()[index(a)] > x.strides()[index(b)]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      inverse[index(order[i])] = static_cast<int64_t>(i);
      shape.push_back(x.shape()[index(order[i])]);
      if (index(order[i]) == dim) at = i;
    }
    for (std::size_t i = 0; i < order.size(); ++i)
      if (i != at) (i < at ? outer : inner) *= shape[i];
  }

  /// `x` in this order, row-major; copied where it is not.
  Tensor rows_of(const Tensor& x) const { return to_format(permute(x, order), MemoryFormat::contiguous); }
  Tensor back(const Tensor& x) const { return permute(x, inverse); }
};

Tensor check_selection(const char* op, const Tensor& x, std::size_t dim, const Tensor& index) {
  check<ShapeError>(index.rank() <= 1, "{}: the index must have rank 1, got {}", op, index.shape());
  return at_least_1d(checked_places(op, index, static_cast<int64_t>(dim), x.shape()));
}

/// The places in `indices` that hold each value, in order: those of v are order[first[v]] ... order[first[v +
/// 1]].
struct Buckets {
  std::vector<int64_t> first, order;

  Buckets(const Tensor& indices, int64_t values) {
    const int64_t numbers =
        checked_add(checked_multiply(2, values, "index_add"), indices.numel(), "index_add");
    check_host_memory("index_add", checked_multiply(numbers, sizeof(int64_t), "index_add"));
    first.resize(static_cast<std::size_t>(values) + 1);
    order.resize(static_cast<std::size_t>(indices.numel()));
    const int64_t* const at = indices.data<int64_t>();
    for (std::size_t i = 0; i < order.size(); ++i) ++first[static_cast<std::size_t>(at[i]) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<int64_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < order.size(); ++i)
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(at[i])]++)] = static_cast<int64_t>(i);
  }
};

}  // namespace

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const RecordOp range("index_select", x, index);
  const std::size_t along = index_dim("index_select", dim, x, index);
  if (x.rank() == 0) {
    check<ShapeError>(index.numel() == 1,
                      "index_select: a tensor of rank 0 gives one element, got {} indices", index.numel());
    return view(index_select(at_least_1d(x), dim, index), {});
  }
  const Tensor indices = check_selection("index_select", x, along, index);
  const Around around(x, along);
  const Tensor from = around.rows_of(x);
  Shape shape = around.shape;
  const int64_t n = std::exchange(shape[around.at], indices.numel());
  const Tensor y = empty(shape, {.dtype = x.dtype(), .device = x.device()});
  const int64_t m = indices.numel();
  const int64_t inner = around.inner;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      index_select_cuda(from, indices, y, n, inner);
      return around.back(y);
    }
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    const T* const in = from.data<T>();
    T* const out = y.data<T>();
    const int64_t* const at = indices.data<int64_t>();
    parallel_for(0, around.outer * m, std::max<int64_t>(1, 32768 / std::max<int64_t>(inner, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const T* const row = in + (i / m * n + at[i % m]) * inner;
                     if (inner == 1)
                       out[i] = *row;
                     else
                       std::copy_n(row, inner, out + i * inner);
                   }
                 });
  });
  return around.back(y);
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const RecordOp range("index_add", x, index, source);
  const std::size_t along = index_dim("index_add", dim, x, index);
  check<DeviceError>(source.device() == x.device(),
                     "index_add: the source must be on {} like the tensor, got {}", x.device(),
                     source.device());
  if (x.rank() == 0) return view(index_add(at_least_1d(x), dim, at_least_1d(index), at_least_1d(source)), {});
  const Tensor indices = check_selection("index_add", x, along, index);
  Shape expected = x.shape();
  expected[along] = indices.numel();
  check<ShapeError>(source.shape() == expected, "index_add: the source must be {}, got {}", expected,
                    source.shape());
  check<DTypeError>(x.dtype() != boolean, "index_add: needs numbers, got bool");
  const DType dtype = compute_dtype(x.dtype());
  const Around around(x, along);
  const Tensor y = copy(around.rows_of(cast(x, dtype)));
  const int64_t n = x.shape()[along];
  const int64_t m = indices.numel();
  const int64_t inner = around.inner;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      // The kernel reads half types as they are.
      const bool reads = compute_dtype(source.dtype()) == dtype;
      index_add_cuda(y, indices, around.rows_of(reads ? source : cast(source, dtype)), n, inner);
      return around.back(cast(y, x.dtype()));
    }
  if (y.numel() == 0) return around.back(cast(y, x.dtype()));
  const Tensor values = around.rows_of(cast(source, dtype));
  const Buckets buckets(indices, n);
  dispatch(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      const T* const from = values.data<T>();
      T* const to = y.data<T>();
      // Each row of the result is one thread's: the order of its sum is that of the indices.
      parallel_for(0, around.outer * n, std::max<int64_t>(1, 8192 / std::max<int64_t>(inner, 1)),
                   [&](int64_t first, int64_t last) {
                     for (int64_t i = first; i < last; ++i) {
                       const auto row = static_cast<std::size_t>(i % n);
                       for (int64_t k = buckets.first[row]; k < buckets.first[row + 1]; ++k) {
                         const T* const add =
                             from + (i / n * m + buckets.order[static_cast<std::size_t>(k)]) * inner;
                         for (int64_t j = 0; j < inner; ++j)
                           to[i * inner + j] = Plus{}(to[i * inner + j], add[j]);
                       }
                     }
                   });
    }
  });
  return around.back(cast(y, x.dtype()));
}

Tensor embedding(const Tensor& index, const Tensor& weight) {
  const RecordOp range("embedding", index, weight);
  check<ShapeError>(weight.rank() == 2, "embedding: the weight must be [rows, width], got {}",
                    weight.shape());
  check<DeviceError>(index.device() == weight.device(),
                     "embedding: the indices must be on {} like the weight, got {}", weight.device(),
                     index.device());
  // The message about a wrong index should show where it is in `index`, not in the flattened one.
  const Tensor indices = checked_indices("embedding", index, 0, weight.shape());
  Shape shape = index.shape();
  shape.push_back(weight.size(1));
  const IndicesAreChecked checked(IndicesAreChecked::Sign::not_negative);
  const Tensor rows = index_select(weight, 0, view(indices, {indices.numel()}));
  return reshape(rows, std::move(shape));
}

Tensor one_hot(const Tensor& index, Integer classes, DType dtype, OneHotOptions options) {
  const RecordOp range("one_hot", index);
  check<ValueError>(classes >= -1,
                    "one_hot: the number of classes must be at least 0, or -1 for the largest "
                    "index plus 1, got {}",
                    classes);
  std::optional<IndicesAreChecked> known;
  if (classes < 0) {
    const Tensor indices = integer_indices("one_hot", index);
    const int64_t n = indices.numel();
    check<ShapeError>(n > 0, "one_hot: without indices the number of classes must be given");
    // Together, so that a GPU is waited for once.
    const std::vector<int64_t> ends =
        cat({at_least_1d(min(indices)), at_least_1d(max(indices))}, 0).to_vector<int64_t>();
    classes = checked_add(ends[1], 1, "one_hot");
    if (ends[0] >= 0) known.emplace(IndicesAreChecked::Sign::not_negative);
  }
  Shape shape = index.shape();
  shape.push_back(std::max<int64_t>(classes, 0));  // below, no index fits
  const bool checked = options.check_index || index.device().is_cpu();
  const Tensor indices =
      checked ? checked_indices("one_hot", index, index.rank(), shape) : integer_indices("one_hot", index);
  if constexpr (with_cuda)
    if (index.device().is_cuda()) {
      const Tensor y = empty(shape, {.dtype = dtype, .device = index.device()});
      one_hot_cuda(indices, classes, y);
      return y;
    }
  const Tensor y = zeros(shape, {.dtype = dtype, .device = Device()});
  dispatch(dtype, [&]<class T>(Type<T>) {
    const T one = Number(1).to<T>();
    for (int64_t i = 0; i < indices.numel(); ++i) y.data<T>()[i * classes + indices.data<int64_t>()[i]] = one;
  });
  return y;
}

Tensor flat_nonzero(const Tensor& x) {
  const Tensor flags = to_format(cast(x, boolean), MemoryFormat::contiguous);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return places_cuda("nonzero", flags);
  std::vector<int64_t> places;
  const bool* const set = flags.data<bool>();
  for (int64_t i = 0; i < flags.numel(); ++i)
    if (set[i]) places.push_back(i);
  return from_vector(places, places.size(), Device());
}

Tensor nonzero(const Tensor& x) {
  const RecordOp range("nonzero", x);
  const Tensor places = flat_nonzero(x);
  const Tensor y = empty({places.numel(), x.rank()}, {.dtype = int64, .device = x.device()});
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      coordinates_cuda("nonzero", places, x.shape(), y);
      return y;
    }
  for (int64_t i = 0; i < places.numel(); ++i) {
    int64_t rest = places.data<int64_t>()[i];
    for (int64_t d = x.rank(); d-- > 0;) {
      const int64_t size = x.shape()[static_cast<std::size_t>(d)];
      y.data<int64_t>()[i * x.rank() + d] = rest % size;
      rest /= size;
    }
  }
  return y;
}

}  // namespace pleat::ops
