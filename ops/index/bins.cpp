// Host and device.
#include "pleat/ops/index/bins.h"

#include <algorithm>
#include <vector>

#include "pleat/core/base/checked_math.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/kernels/fast_divider.h"
#include "pleat/core/kernels/for_each_index.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/one_type.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/join.h"

namespace pleat {
namespace {

template <class T>
struct FindPlace {
  const T* sorted;
  const T* values;
  int64_t* places;
  int64_t length;
  FastDivider values_of_line;
  bool one_line, right;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t in_line = i;
    const int64_t line = values_of_line.divide(in_line);
    const T* const from = one_line ? sorted : sorted + line * length;
    const T value = values[i];
    int64_t low = 0, high = length;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      const bool is_behind = right ? from[middle] > value : from[middle] >= value;
      if (is_behind)
        high = middle;
      else
        low = middle + 1;
    }
    places[i] = low;
  }
};

}  // namespace

Tensor bincount(const Tensor& x, const BincountOptions& options) {
  constexpr const char* op = "bincount";
  const RecordOp range(op, x, options.weights);
  check<DTypeError>(!is_floating(x.dtype()) && x.dtype() != boolean, "{}: needs integers, got {}", op, x);
  check<ShapeError>(x.rank() == 1, "{}: needs a vector, got {}; flatten makes one", op, x);
  check<ValueError>(options.minlength >= 0, "{}: minlength must be at least 0, got {}", op,
                    options.minlength);
  const Tensor& weights = options.weights;
  check<ShapeError>(!weights.defined() || weights.shape() == x.shape(),
                    "{}: the weights must have the shape of {}, got {}", op, x, weights);
  int64_t length = options.minlength;
  if (x.numel() > 0) {
    const std::vector<int64_t> ends = stack({min(x), max(x)}).to_vector<int64_t>();
    check<ValueError>(ends[0] >= 0, "{}: integers must not be negative, got {}", op, ends[0]);
    length = std::max(length, checked_add(ends[1], 1, op));
  }
  const Tensor each =
      weights.defined() ? weights : full(x.shape(), 1, {.dtype = int64, .device = x.device()});
  const Tensor result = zeros({length}, {.dtype = each.dtype(), .device = x.device()});
  const ops::IndicesAreChecked checked(ops::IndicesAreChecked::Sign::not_negative);
  if (x.numel() > 0) ops::scatter_add_into(result, 0, x, each);
  return result;
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, SearchsortedOptions options) {
  constexpr const char* op = "searchsorted";
  const RecordOp range(op, sorted, values);
  ops::check_types<ops::Numbers>(op, sorted.dtype());
  ops::check_one_type(op, "what is sorted", sorted, "the values", values);
  check<DeviceError>(sorted.device() == values.device(), "{}: both must be on one device, got {} and {}", op,
                     sorted.device(), values.device());
  bool fits = sorted.rank() == 1 || (sorted.rank() >= 1 && sorted.rank() == values.rank());
  for (int64_t d = 0; fits && d + 1 < sorted.rank(); ++d) fits = sorted.size(d) == values.size(d);
  check<ShapeError>(fits, "{}: what is sorted must be [N], or [..., N] for values [..., M], got {} and {}",
                    op, sorted, values);
  const Tensor result = empty(values.shape(), {.dtype = int64, .device = values.device()});
  if (result.numel() == 0) return result;
  const DType compute = compute_dtype(values.dtype());
  const Tensor from = ops::to_format(ops::cast(sorted, compute), MemoryFormat::contiguous);
  const Tensor what = ops::to_format(ops::cast(values, compute), MemoryFormat::contiguous);
  ops::Numbers::dispatch(compute, [&]<class T>(Type<T>) {
    const int64_t in_line = values.rank() == 0 ? 1 : values.size(-1);
    for_each_index(op, values.device(), result.numel(),
                   FindPlace<T>{from.data<T>(), what.data<T>(), result.data<int64_t>(), sorted.size(-1),
                                FastDivider(in_line), sorted.rank() == 1, bool{options.right}});
  });
  return result;
}

}  // namespace pleat
