#include "pleat/core/create.h"
#include "pleat/core/dispatch_size.h"
#include "pleat/core/grid.h"
#include "pleat/ops/elementwise/grid_map.h"
#include "pleat/ops/index/ordered_lines.h"
#include "pleat/ops/index/sort_functors.h"
#include "pleat/ops/index/sort_grid.h"

namespace pleat::ops {
namespace {

/// With the dimension `dim` as the last one.
template <class T>
std::vector<T> moved_last(std::vector<T> values, std::size_t dim) {
  const T value = values[dim];
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(dim));
  values.push_back(value);
  return values;
}

OrderedLines ordered(const char* op, const Tensor& x, std::size_t dim, bool descending) {
  const int64_t n = x.shape()[dim];
  const auto at = row_major_offsets<1>(op, moved_last(x.shape(), dim), {moved_last(x.strides(), dim)});
  OrderedLines result;
  Numbers::dispatch(x.dtype(), [&]<class T>(Type<T>) {
    using Key = typename SortKey<T>::Key;
    const DType dtype = sizeof(Key) == 4 ? int32 : int64;
    const Tensor keys = empty({x.numel()}, {.dtype = dtype, .device = x.device()});
    grid_for(op, x.device(), x.numel(),
             SortKey<T>{at, NumberArray<T>(x), descending, reinterpret_cast<Key*>(keys.raw())});
    result = order_lines(op, keys, x.numel() / n, n, 8 * static_cast<int>(sizeof(Key)));
  });
  return result;
}

}  // namespace

void sort_lines_on_grid(const char* op, const Tensor& x, std::size_t dim, bool descending,
                        const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const OrderedLines lines = ordered(op, x, dim, descending);
  Strides x_strides = moved_last(x.strides(), dim);
  x_strides.back() = 0;
  const auto at = row_major_offsets<3>(
      op, moved_last(values.shape(), dim),
      {x_strides, moved_last(values.strides(), dim), moved_last(indices.strides(), dim)});
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const TakeOrdered<T> functor{at,
                                 FastDivider(values.shape()[dim]),
                                 x.shape()[dim],
                                 x.strides()[dim],
                                 lines.order.data<int64_t>(),
                                 reinterpret_cast<const T*>(x.raw()),
                                 reinterpret_cast<T*>(values.raw()),
                                 indices.data<int64_t>()};
    grid_for(op, x.device(), values.numel(), functor);
  });
}

}  // namespace pleat::ops
