#include <bit>
#include <cstdint>
#include <type_traits>

#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/ordered_lines.h"

namespace pleat::ops {
namespace {

/// Sorting as sorting of unsigned numbers, which a radix sort can do.
/// The unsigned number that has a value's place in the order: a NaN above all numbers, and -0 where 0 is.
template <class T>
PLEAT_HOST_DEVICE auto ordered_bits(T value) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return static_cast<Key>(~Key(0));
    if (value == 0) return sign;
    const Key bits = std::bit_cast<Key>(value);
    return static_cast<Key>((bits & sign) != 0 ? ~bits : bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(static_cast<Key>(value) ^ sign);
  } else {
    return static_cast<Key>(value);
  }
}

/// The key of one element of [lines, n].
template <class T>
struct SortKey {
  using Key = decltype(ordered_bits(T{}));
  ElementOffsets<1> x_at;
  NumberArray<T> x;
  bool descending;
  Key* keys;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    const Key key = ordered_bits(x.load(x_at.at(i)[0]));
    keys[i] = descending ? static_cast<Key>(~key) : key;
  }
};

/// One of the first k of each line [lines, k], taken to where it belongs by the order [lines, n].
template <class T>
struct TakeOrdered {
  ElementOffsets<3> at;  ///< of a line in x, of an element in values and in indices
  FastDivider k;
  int64_t n;
  int64_t x_step;
  const int64_t* order;
  const T* x;
  T* values;
  int64_t* indices;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t place = i;
    const int64_t line = k.divide(place);
    const int64_t index = order[line * n + place];
    const auto offsets = at.at(i);
    values[offsets[1]] = x[offsets[0] + index * x_step];
    indices[offsets[2]] = index;
  }
};

/// With the dimension `dim` as the last one.
Shape moved_last(Shape values, std::size_t dim) {
  const int64_t value = values[dim];
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
    launch_indices(op, x.device(), x.numel(),
                   SortKey<T>{at, NumberArray<T>(x), descending, reinterpret_cast<Key*>(keys.raw())});
    result = order_lines(op, keys, x.numel() / n, n, 8 * static_cast<int>(sizeof(Key)));
  });
  return result;
}

}  // namespace

void sort_lines_cuda(const char* op, const Tensor& x, std::size_t dim, bool descending, const Tensor& values,
                     const Tensor& indices) {
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
    launch_indices(op, x.device(), values.numel(), functor);
  });
}

}  // namespace pleat::ops
