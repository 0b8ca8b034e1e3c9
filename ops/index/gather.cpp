#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic_kernels.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/index_kernels.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/lines.h"
#include "pleat/ops/index/scatter_fold.h"
#include "pleat/ops/shape/view.h"

namespace pleat::ops {
namespace {

/// Its strides with the index's part left to the index.
Strides without_step(const Tensor& x, std::size_t dim) {
  Strides strides = x.strides();
  strides[dim] = 0;
  return strides;
}

}  // namespace

void check_index_shape(const char* op, const Tensor& x, std::size_t dim, const Tensor& index) {
  check<ShapeError>(index.shape().size() == x.shape().size(),
                    "{}: the index must have the rank of the tensor {}, got {}; unsqueeze adds a dimension",
                    op, x.shape(), index.shape());
  for (std::size_t d = 0; d < index.shape().size(); ++d)
    check<ShapeError>(d == dim || index.shape()[d] <= x.shape()[d],
                      "{}: the index {} must not exceed the tensor {} except in dimension {}", op,
                      index.shape(), x.shape(), dim);
}

void check_source(const char* op, const Tensor& x, const Tensor& index, const Tensor& source) {
  check<DeviceError>(source.device() == x.device(), "{}: the source must be on {} like the tensor, got {}",
                     op, x.device(), source.device());
  check<ShapeError>(source.shape() == index.shape(), "{}: the source must have the index's shape {}, got {}",
                    op, index.shape(), source.shape());
}

void scatter_checked_into(const Tensor& y, std::size_t along, const Tensor& indices, const Tensor& source) {
  if constexpr (with_cuda)
    if (y.device().is_cuda()) {
      const Tensor dense = y.is_dense() ? y : copy(y);
      dense.begin_write();
      scatter_cuda(dense, along, to_format(indices, MemoryFormat::contiguous), source);
      if (!y.is_dense()) copy_into(y, dense);
      return;
    }
  y.begin_write();
  const int64_t y_step = y.strides()[along];
  dispatch(y.dtype(), [&]<class T>(Type<T>) {
    for_each_in_lines<3>(
        indices.shape(), along, {indices.strides(), source.strides(), without_step(y, along)},
        [y_step, to = y.data<T>(), from = source.data<T>(), at = indices.data<int64_t>()](const auto& place) {
          to[place[2] + at[place[0]] * y_step] = from[place[1]];
        });
  });
}

Tensor scatter_checked(const Tensor& x, std::size_t along, const Tensor& indices, const Tensor& source) {
  const Tensor y = copy(x);
  scatter_checked_into(y, along, indices, source);
  return y;
}

void scatter_fold_into(const char* op, const Tensor& y, std::size_t along, const Tensor& places,
                       const Tensor& source, ScatterFold fold) {
  y.begin_write();
  if constexpr (with_cuda)
    if (y.device().is_cuda()) return scatter_fold_cuda(op, y, along, places, source, fold);
  const Tensor values = to_format(source, MemoryFormat::contiguous);
  const int64_t y_step = y.strides()[along];
  dispatch_fold(fold, [&](auto functor) {
    Numbers::dispatch(y.dtype(), [&]<class T>(Type<T>) {
      for_each_in_lines<2>(places.shape(), along, {places.strides(), without_step(y, along)},
                           [y_step, functor, to = y.data<T>(), from = values.data<T>(),
                            at = places.data<int64_t>()](const auto& place) {
                             T& result = to[place[1] + at[place[0]] * y_step];
                             result = functor(result, from[place[0]]);
                           });
    });
  });
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const RecordOp range("gather", x, index);
  if (x.rank() == 0 || index.rank() == 0)
    return view(gather(at_least_1d(x), dim, at_least_1d(index)), index.shape());
  const std::size_t along = index_dim("gather", dim, x, index);
  check_index_shape("gather", x, along, index);
  const Tensor indices = checked_places("gather", index, static_cast<int64_t>(along), x.shape());
  const Tensor y = empty(index.shape(), {.dtype = x.dtype(), .device = x.device()});
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      gather_cuda(x, along, indices, y);
      return y;
    }
  const int64_t x_step = x.strides()[along];
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    for_each_in_lines<2>(y.shape(), along, {y.strides(), without_step(x, along)},
                         [x_step, to = y.data<T>(), from = x.data<T>(), at = indices.data<int64_t>()](
                             const auto& place) { to[place[0]] = from[place[1] + at[place[0]] * x_step]; });
  });
  return y;
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const RecordOp range("scatter_add", x, index, source);
  const DType dtype = compute_dtype(x.dtype());
  const Tensor y = x.dtype() == dtype ? copy(x) : cast(x, dtype);
  scatter_add_into(y, dim, index, source);
  return cast(y, x.dtype());
}

void scatter_add_into(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const RecordOp range("scatter_add", x, index, source);
  check_source("scatter_add", x, index, source);
  if (x.rank() == 0 || index.rank() == 0)
    return scatter_add_into(at_least_1d(x), dim, at_least_1d(index), at_least_1d(source));
  const std::size_t along = index_dim("scatter_add", dim, x, index);
  check_index_shape("scatter_add", x, along, index);
  check<DTypeError>(x.dtype() != boolean, "scatter_add: needs numbers, got bool");
  const Tensor indices = checked_places("scatter_add", index, static_cast<int64_t>(along), x.shape());
  const DType dtype = compute_dtype(x.dtype());
  if (!x.is_dense() || x.dtype() != dtype) return copy_into(x, scatter_add(x, dim, index, source));
  const bool shared = source.impl().storage == x.impl().storage;
  const Tensor given = shared ? copy(source) : source;
  // The kernel of a GPU reads half types.
  const bool is_read = x.device().is_cuda() && compute_dtype(given.dtype()) == dtype;
  scatter_fold_into("scatter_add", x, along, indices, is_read ? given : cast(given, dtype), ScatterFold::sum);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const RecordOp range("scatter", x, index, source);
  check_source("scatter", x, index, source);
  if (x.rank() == 0 || index.rank() == 0)
    return view(scatter(at_least_1d(x), dim, at_least_1d(index), at_least_1d(source)), x.shape());
  const std::size_t along = index_dim("scatter", dim, x, index);
  check_index_shape("scatter", x, along, index);
  check<DTypeError>(source.dtype() == x.dtype(), "scatter: the source must be {} like the tensor, got {}",
                    x.dtype(), source.dtype());
  return scatter_checked(x, along, checked_places("scatter", index, static_cast<int64_t>(along), x.shape()),
                         source);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value) {
  const RecordOp range("scatter", x, index);
  if (x.rank() == 0 || index.rank() == 0)
    return view(scatter(at_least_1d(x), dim, at_least_1d(index), value), x.shape());
  const std::size_t along = index_dim("scatter", dim, x, index);
  check_index_shape("scatter", x, along, index);
  check<DTypeError>(promote_with_number(x.dtype(), value) == x.dtype(),
                    "scatter: a tensor of {} cannot hold {}", x.dtype(), value);
  return scatter_checked(
      x, along, checked_places("scatter", index, static_cast<int64_t>(along), x.shape()),
      number_like(value, x, "scatter").as_strided(index.shape(), Strides(index.shape().size(), 0), 0));
}

}  // namespace pleat::ops
