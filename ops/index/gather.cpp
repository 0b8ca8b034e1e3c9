#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/kernels.h"
#include "pleat/ops/index/lines.h"
#include "pleat/ops/index/scatter_fold.h"

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

Tensor gather(const Tensor& any_x, int64_t dim, const Tensor& index) {
  const RecordOp range("gather", any_x, index);
  const std::size_t along = index_dim("gather", dim, any_x, index);
  const Tensor x = at_least_1d(any_x), at_line = at_least_1d(index);
  check_index_shape("gather", x, along, at_line);
  const Tensor indices = checked_places("gather", at_line, static_cast<int64_t>(along), x.shape());
  const Tensor result = empty(index.shape(), {.dtype = x.dtype(), .device = x.device()});
  const Tensor y = at_least_1d(result);
  if constexpr (with_cuda)
    if (x.device().is_cuda()) {
      gather_cuda(x, along, indices, y);
      return result;
    }
  const int64_t x_step = x.strides()[along];
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    for_each_in_lines<2>(y.shape(), along, {y.strides(), without_step(x, along)},
                         [x_step, to = y.data<T>(), from = x.data<T>(), at = indices.data<int64_t>()](
                             const auto& place) { to[place[0]] = from[place[1] + at[place[0]] * x_step]; });
  });
  return result;
}

void scatter_add_into(const Tensor& any_x, int64_t dim, const Tensor& index, const Tensor& any_source) {
  const RecordOp range("scatter_add", any_x, index, any_source);
  check_source("scatter_add", any_x, index, any_source);
  const std::size_t along = index_dim("scatter_add", dim, any_x, index);
  const Tensor x = at_least_1d(any_x), at = at_least_1d(index), source = at_least_1d(any_source);
  check_index_shape("scatter_add", x, along, at);
  check<DTypeError>(x.dtype() != boolean, "scatter_add: needs numbers, got bool");
  const Tensor indices = checked_places("scatter_add", at, static_cast<int64_t>(along), x.shape());
  const DType dtype = compute_dtype(x.dtype());
  if (!x.is_dense() || x.dtype() != dtype) {
    const Tensor sums = x.dtype() == dtype ? copy(x) : cast(x, dtype);
    scatter_add_into(sums, dim, at, source);
    return copy_into(x, sums);
  }
  const bool shared = source.impl().storage == x.impl().storage;
  const Tensor given = shared ? copy(source) : source;
  // The kernel of a GPU reads half types.
  const bool is_read = x.device().is_cuda() && compute_dtype(given.dtype()) == dtype;
  scatter_fold_into("scatter_add", x, along, indices, is_read ? given : cast(given, dtype), ScatterFold::sum);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  check_source("scatter", x, index, source);
  const std::size_t along = index_dim("scatter", dim, x, index);
  const Tensor y = copy(x), line = at_least_1d(y), indices = at_least_1d(index);
  check_index_shape("scatter", line, along, indices);
  check<DTypeError>(source.dtype() == x.dtype(), "scatter: the source must be {} like the tensor, got {}",
                    x.dtype(), source.dtype());
  scatter_checked_into(line, along,
                       checked_places("scatter", indices, static_cast<int64_t>(along), line.shape()),
                       at_least_1d(source));
  return y;
}

}  // namespace pleat::ops
