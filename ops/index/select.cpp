#include <algorithm>
#include <numeric>
#include <optional>

#include "pleat/autograd/call.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/simd.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/trace.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"
#include "pleat/ops/shape/shape.h"

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

/// to[at[j]] += from[j] for all j, in `blocks` blocks of n and of m elements.
template <int64_t blocks, class T>
void add_elements(T* to, const T* from, const int64_t* at, int64_t m, int64_t n) {
  for (int64_t j = 0; j < m; ++j)
    for (int64_t b = 0; b < blocks; ++b) {
      T& sum = to[b * n + at[j]];
      sum = Plus{}(sum, from[b * m + j]);
    }
}

/// The same for rows of `inner` elements, of those rows `at` that are in [low, high).
template <class T>
void add_rows(T* to, const T* from, const int64_t* at, int64_t m, int64_t inner, int64_t low, int64_t high) {
  for (int64_t j = 0; j < m; ++j) {
    if (at[j] < low || at[j] >= high) continue;
    T* const sum = to + at[j] * inner;
    const T* const row = from + j * inner;
    PLEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < inner; ++i) sum[i] = Plus{}(sum[i], row[i]);
  }
}

}  // namespace

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const TracedCall range("index_select", {x, index});
  const NoGrad off_the_tape;
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
                   for (int64_t i = first; i < last;) {
                     const int64_t begin = i % m;
                     const int64_t count = std::min(m - begin, last - i);
                     const T* const block = in + i / m * n * inner;
                     if (inner == 1)
                       for (int64_t j = 0; j < count; ++j) out[i + j] = block[at[begin + j]];
                     else
                       for (int64_t j = 0; j < count; ++j)
                         std::copy_n(block + at[begin + j] * inner, inner, out + (i + j) * inner);
                     i += count;
                   }
                 });
  });
  return around.back(y);
}

void index_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const TracedCall range("index_add", {x, index, source});
  const NoGrad off_the_tape;
  const std::size_t along = index_dim("index_add", dim, x, index);
  check<DeviceError>(source.device() == x.device(),
                     "index_add: the source must be on {} like the tensor, got {}", x.device(),
                     source.device());
  if (x.rank() == 0) return index_add_into(at_least_1d(x), dim, at_least_1d(index), at_least_1d(source));
  const Tensor indices = check_selection("index_add", x, along, index);
  Shape expected = x.shape();
  expected[along] = indices.numel();
  check<ShapeError>(source.shape() == expected, "index_add: the source must be {}, got {}", expected,
                    source.shape());
  check<DTypeError>(x.dtype() != boolean, "index_add: needs numbers, got bool");
  const DType dtype = compute_dtype(x.dtype());
  const Around around(x, along);
  const Tensor y = around.rows_of(x);
  // A GPU's kernel adds to half types as they are.
  if (y.raw() != x.raw() || (x.dtype() != dtype && x.device().is_cpu())) {
    const Tensor sums = x.dtype() == dtype ? copy(x) : cast(x, dtype);
    index_add_into(sums, dim, index, source);
    return copy_into(x, sums);
  }
  const bool shared = source.impl().storage == x.impl().storage;
  const Tensor given = shared ? copy(source) : source;
  const int64_t n = x.shape()[along];
  const int64_t m = indices.numel();
  const int64_t inner = around.inner;
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      const bool reads = compute_dtype(given.dtype()) == dtype;
      x.begin_write();
      index_add_cuda(y, indices, around.rows_of(reads ? given : cast(given, dtype)), n, inner);
      return;
    }
  if (y.numel() == 0) return;
  const Tensor values = around.rows_of(cast(given, dtype));
  x.begin_write();
  dispatch(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      const T* const from = values.data<T>();
      T* const to = y.data<T>();
      const int64_t* const at = indices.data<int64_t>();
      // Each row of the result is one thread's: the order of its sum is that of the indices. Where there are
      // few blocks, a thread takes a range of rows, and passes over the indices of others.
      const int64_t work = std::max<int64_t>(1, m * inner);
      const int64_t threads = num_threads();
      const bool shares = threads > 1 && inner >= 32 && around.outer < 4 * threads;
      const int64_t ranges = shares ? std::min(n, std::clamp<int64_t>(work / 8192, 1, 2 * threads)) : 1;
      parallel_for(0, around.outer * ranges, std::max<int64_t>(1, 8192 * ranges / work),
                   [&](int64_t first, int64_t last) {
                     if (inner == 1)
                       for (; first + 4 <= last; first += 4)
                         add_elements<4>(to + first * n, from + first * m, at, m, n);
                     for (int64_t i = first; i < last; ++i) {
                       const int64_t block = i / ranges;
                       const int64_t part = i % ranges;
                       if (inner == 1)
                         add_elements<1>(to + block * n, from + block * m, at, m, n);
                       else
                         add_rows(to + block * n * inner, from + block * m * inner, at, m, inner,
                                  part * n / ranges, (part + 1) * n / ranges);
                     }
                   });
    }
  });
}

Tensor flat_nonzero(const Tensor& x) {
  const Tensor flags = to_format(cast(x, boolean), MemoryFormat::contiguous);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) return places_cuda("nonzero", flags);
  // Counted, then written.
  constexpr int64_t length = 8192;
  const int64_t n = flags.numel();
  const uint8_t* const set = reinterpret_cast<const uint8_t*>(flags.data<bool>());
  std::vector<int64_t> ends(static_cast<std::size_t>(ceil_div(n, length)));  // of each chunk's places
  const auto chunks = static_cast<int64_t>(ends.size());
  parallel_for(0, chunks, 4, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      int32_t found = 0;
      for (int64_t i = chunk * length; i < std::min(n, (chunk + 1) * length); ++i) found += set[i];
      ends[static_cast<std::size_t>(chunk)] = found;
    }
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  const Tensor places = empty({ends.empty() ? 0 : ends.back()}, {.dtype = int64, .device = Device()});
  parallel_for(0, chunks, 4, [&](int64_t first, int64_t last) {
    int64_t* out = places.data<int64_t>() + (first == 0 ? 0 : ends[static_cast<std::size_t>(first) - 1]);
    const int64_t* const end = places.data<int64_t>() + ends[static_cast<std::size_t>(last) - 1];
    // Without a branch on the flag, which cannot be predicted.
    for (int64_t i = first * length; out != end; ++i) {
      *out = i;
      out += set[i];
    }
  });
  return places;
}

}  // namespace pleat::ops

namespace pleat {

Tensor one_hot(const Tensor& index, Integer classes, DType dtype, OneHotOptions options) {
  const Call call("one_hot", {index}, {{"classes", classes}});
  check<ValueError>(
      classes >= -1,
      "one_hot: the number of classes must be at least 0, or -1 for the largest index plus 1, got {}",
      classes);
  std::optional<ops::IndicesAreChecked> known;
  if (classes < 0) {
    const Tensor indices = ops::integer_indices("one_hot", index);
    const int64_t n = indices.numel();
    check<ShapeError>(n > 0, "one_hot: without indices the number of classes must be given");
    // Together, so that a GPU is waited for once.
    const std::vector<int64_t> ends =
        cat({ops::at_least_1d(min(indices)), ops::at_least_1d(max(indices))}, 0).to_vector<int64_t>();
    classes = checked_add(ends[1], 1, "one_hot");
    if (ends[0] >= 0) known.emplace(ops::IndicesAreChecked::Sign::not_negative);
  }
  Shape shape = index.shape();
  shape.push_back(std::max<int64_t>(classes, 0));  // below, no index fits
  const bool checked = options.check_index || index.device().is_cpu();
  const Tensor indices = checked ? ops::checked_indices("one_hot", index, index.rank(), shape)
                                 : ops::integer_indices("one_hot", index);
  if constexpr (with_cuda)
    if (index.device().is_cuda()) {
      const Tensor y = empty(shape, {.dtype = dtype, .device = index.device()});
      ops::one_hot_cuda(indices, classes, y);
      return call.gives(y);
    }
  const Tensor y = empty(shape, {.dtype = dtype, .device = Device()});
  dispatch(dtype, [&]<class T>(Type<T>) {
    const T one = Number(1).to<T>();
    parallel_for(0, indices.numel(), 1 + 32768 / std::max<int64_t>(classes, 1),
                 [&, at = indices.data<int64_t>(), to = y.data<T>()](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     std::fill_n(to + i * classes, classes, T(0));
                     to[i * classes + at[i]] = one;
                   }
                 });
  });
  return call.gives(y);
}

Tensor nonzero(const Tensor& x) {
  const RecordOp range("nonzero", x);
  const Tensor places = ops::flat_nonzero(x);
  const Tensor y = empty({places.numel(), x.rank()}, {.dtype = int64, .device = x.device()});
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      ops::coordinates_cuda("nonzero", places, x.shape(), y);
      return y;
    }
  const auto rank = x.shape().size();
  const std::vector<FastDivider> sizes(x.shape().begin(), x.shape().end());
  parallel_for(0, places.numel(), 4096, [&](int64_t first, int64_t last) {
    const int64_t* const at = places.data<int64_t>();
    int64_t* row = y.data<int64_t>() + first * x.rank();
    for (int64_t i = first; i < last; ++i, row += rank) {
      int64_t rest = at[i];
      for (std::size_t d = rank; d-- > 1;) {
        row[d] = rest;
        rest = sizes[d].divide(row[d]);
      }
      if (rank > 0) row[0] = rest;
    }
  });
  return y;
}

}  // namespace pleat
