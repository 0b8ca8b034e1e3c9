#include <array>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/index/indices.h"
#include "pleat/ops/index/lines.h"

namespace pleat::ops {
namespace {

/// Along all dimensions but `dim` the index must stay inside x.
void check_index_shape(const char* op, const Tensor& x, std::size_t dim, const Tensor& index) {
  check<ShapeError>(index.shape().size() == x.shape().size(),
                    "{}: the index must have the rank of the tensor {}, got {}", op, x.shape(),
                    index.shape());
  for (std::size_t d = 0; d < index.shape().size(); ++d)
    check<ShapeError>(d == dim || index.shape()[d] <= x.shape()[d],
                      "{}: the index {} must not exceed the tensor {} except in dimension {}", op,
                      index.shape(), x.shape(), dim);
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const std::size_t along = index_dim("gather", dim, x);
  check_index_shape("gather", x, along, index);
  const Tensor indices = checked_indices("gather", index, static_cast<int64_t>(along), x.shape());
  const Tensor y = empty(index.shape(), {.dtype = x.dtype(), .device = x.device()});
  const int64_t n = index.shape()[along];
  const int64_t step = y.strides()[along];
  const int64_t x_step = x.strides()[along];
  dispatch(x.dtype(), [&]<class T>(Type<T>) {
    for_each_line<2>(
        y.shape(), along, {y.strides(), x.strides()},
        [&, to = y.data<T>(), from = x.data<T>(), at = indices.data<int64_t>()](const auto& start) {
          for (int64_t i = 0; i < n; ++i)
            to[start[0] + i * step] = from[start[1] + at[start[0] + i * step] * x_step];
        });
  });
  return y;
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const std::size_t along = index_dim("scatter_add", dim, x);
  check_index_shape("scatter_add", x, along, index);
  check<ShapeError>(source.shape() == index.shape(),
                    "scatter_add: the source must have the index's shape {}, got {}", index.shape(),
                    source.shape());
  check<DTypeError>(x.dtype() != boolean, "scatter_add: needs numbers, got bool");
  const Tensor indices = checked_indices("scatter_add", index, static_cast<int64_t>(along), x.shape());
  const DType dtype = compute_dtype(x.dtype());
  const Tensor y = x.dtype() == dtype ? copy(x) : cast(x, dtype);
  const Tensor values = to_format(cast(source, dtype), MemoryFormat::contiguous);
  const int64_t n = index.shape()[along];
  const int64_t step = indices.strides()[along];
  const int64_t y_step = y.strides()[along];
  dispatch(dtype, [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      for_each_line<2>(
          index.shape(), along, {indices.strides(), y.strides()},
          [&, to = y.data<T>(), from = values.data<T>(), at = indices.data<int64_t>()](const auto& start) {
            for (int64_t i = 0; i < n; ++i) {
              const int64_t place = start[0] + i * step;
              T& sum = to[start[1] + at[place] * y_step];
              sum = static_cast<T>(sum + from[place]);
            }
          });
  });
  return cast(y, x.dtype());
}

}  // namespace pleat::ops
