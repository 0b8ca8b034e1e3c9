#include <bit>
#include <cstring>
#include <vector>

#include "pleat/core/copy.h"
#include "pleat/core/create.h"
#include "pleat/core/dispatch_size.h"
#include "pleat/core/grid.h"
#include "pleat/core/host_array.h"
#include "pleat/core/number.h"
#include "pleat/ops/elementwise/grid_map.h"
#include "pleat/ops/index/index_functors.h"
#include "pleat/ops/index/index_grid.h"
#include "pleat/ops/index/ordered_lines.h"

#if PLEAT_COMPILES_KERNELS
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "pleat/ops/index/cub_call.h"
#endif

namespace pleat::ops {
namespace {

/// Lines so short, or so many, that a thread works through each of them.
bool has_threads_for_lines(int64_t lines, int64_t n) { return n <= 32 || lines >= 16384; }

int bits_of(int64_t limit) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(limit < 1 ? 1 : limit)));
}

template <class T>
std::vector<T> without(std::vector<T> values, std::size_t dim) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(dim));
  return values;
}

Strides with_zero(Strides strides, std::size_t dim) {
  strides[dim] = 0;
  return strides;
}

Lines lines_along(const char* op, std::size_t dim, const Tensor& indices, const Tensor& source,
                  const Tensor& y) {
  return {row_major_offsets<3>(
              op, without(indices.shape(), dim),
              {without(indices.strides(), dim), without(source.strides(), dim), without(y.strides(), dim)}),
          {indices.strides()[dim], source.strides()[dim], y.strides()[dim]},
          indices.shape()[dim]};
}

/// Where the elements of the index go in y's memory, sorted.
OrderedLines destinations(const char* op, std::size_t dim, const Tensor& indices, const Tensor& y) {
  const Tensor keys = empty({indices.numel()}, {.dtype = int64, .device = y.device()});
  const Destination functor{row_major_offsets<1>(op, indices.shape(), {with_zero(y.strides(), dim)}),
                            y.strides()[dim], indices.data<int64_t>(), keys.data<int64_t>()};
  grid_for(op, y.device(), keys.numel(), functor);
  return order_lines(op, keys, 1, keys.numel(), bits_of(y.numel()));
}

template <class T>
T* bits(const Tensor& t) {
  return reinterpret_cast<T*>(t.raw());
}

/// Adds rows by their sorted keys.
template <class T>
void add_runs(const char* op, const OrderedLines& runs, const Tensor& values, const Tensor& y, int64_t rows,
              int64_t inner) {
  const AddRun<T> functor{runs.keys.data<int64_t>(),
                          runs.order.data<int64_t>(),
                          rows,
                          FastDivider(runs.keys.numel()),
                          FastDivider(inner),
                          NumberArray<T>(values),
                          NumberArray<T>(y)};
  grid_for(op, y.device(), values.numel(), functor);
}

}  // namespace

void gather_on_grid(const Tensor& x, std::size_t dim, const Tensor& indices, const Tensor& y) {
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const GatherElement<T> functor{
        row_major_offsets<1>("gather", indices.shape(), {with_zero(x.strides(), dim)}), x.strides()[dim],
        indices.data<int64_t>(), bits<T>(x), bits<T>(y)};
    grid_for("gather", y.device(), y.numel(), functor);
  });
}

void scatter_on_grid(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source) {
  if (indices.numel() == 0) return;
  const int64_t n = indices.shape()[dim];
  const int64_t lines = indices.numel() / n;
  if (has_threads_for_lines(lines, n))
    return dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
      const ScatterLine<T> functor{lines_along("scatter", dim, indices, source, y), indices.data<int64_t>(),
                                   bits<T>(source), bits<T>(y)};
      grid_for("scatter", y.device(), lines, functor);
    });
  const OrderedLines runs = destinations("scatter", dim, indices, y);
  const Tensor values = to_format(source, MemoryFormat::contiguous);
  dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
    const ScatterRun<T> functor{runs.keys.data<int64_t>(), runs.order.data<int64_t>(), indices.numel(),
                                bits<T>(values), bits<T>(y)};
    grid_for("scatter", y.device(), indices.numel(), functor);
  });
}

void scatter_add_on_grid(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source) {
  if (indices.numel() == 0) return;
  const int64_t n = indices.shape()[dim];
  const int64_t lines = indices.numel() / n;
  Numbers::dispatch(y.dtype(), [&]<class T>(Type<T>) {
    if (has_threads_for_lines(lines, n)) {
      const ScatterAddLine<T> functor{lines_along("scatter_add", dim, indices, source, y),
                                      indices.data<int64_t>(), NumberArray<T>(source), bits<T>(y)};
      return grid_for("scatter_add", y.device(), lines, functor);
    }
    add_runs<T>("scatter_add", destinations("scatter_add", dim, indices, y),
                to_format(source, MemoryFormat::contiguous), y, y.numel(), 1);
  });
}

void index_select_on_grid(const Tensor& x, const Tensor& indices, const Tensor& y, int64_t rows,
                          int64_t inner) {
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const SelectElement<T> functor{indices.data<int64_t>(), rows,       FastDivider(indices.numel()),
                                   FastDivider(inner),      bits<T>(x), bits<T>(y)};
    grid_for("index_select", y.device(), y.numel(), functor);
  });
}

void index_add_on_grid(const Tensor& y, const Tensor& indices, const Tensor& values, int64_t rows,
                       int64_t inner) {
  if (values.numel() == 0) return;
  const OrderedLines runs = order_lines("index_add", indices, 1, indices.numel(), bits_of(rows));
  Numbers::dispatch(y.dtype(),
                    [&]<class T>(Type<T>) { add_runs<T>("index_add", runs, values, y, rows, inner); });
}

void one_hot_on_grid(const Tensor& indices, int64_t classes, const Tensor& y) {
  uint64_t one = 0;
  dispatch(y.dtype(), [&]<class T>(Type<T>) {
    const T value = Number(1).to<T>();
    std::memcpy(&one, &value, sizeof(T));
  });
  dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
    T pattern;
    std::memcpy(&pattern, &one, sizeof(T));
    grid_for("one_hot", y.device(), y.numel(),
             OneHotElement<T>{indices.data<int64_t>(), FastDivider(classes), pattern, bits<T>(y)});
  });
}

Tensor places_on_grid(const char* op, const Tensor& flags) {
  const int64_t n = flags.numel();
#if PLEAT_COMPILES_KERNELS
  if (flags.device().is_cuda()) {
    const Tensor places = empty({n}, {.dtype = int64, .device = flags.device()});
    const Tensor found = zeros({1}, {.dtype = int64, .device = flags.device()});
    if (n > 0)
      cub_call(op, flags.device(), [&](void* memory, std::size_t& bytes, cudaStream_t stream) {
        return cub::DeviceSelect::Flagged(memory, bytes, thrust::counting_iterator<int64_t>(0),
                                          flags.data<bool>(), places.data<int64_t>(), found.data<int64_t>(),
                                          n, stream);
      });
    return copy(places.as_strided({found.item<int64_t>()}, {1}, 0));
  }
#endif
  (void)op;
  std::vector<int64_t> places;
  const bool* const set = flags.data<bool>();
  for (int64_t i = 0; i < n; ++i)
    if (set[i]) places.push_back(i);
  return from_vector(places, places.size(), Device());
}

void coordinates_on_grid(const char* op, const Tensor& places, const Shape& shape, const Tensor& y) {
  const HostArray<int64_t> sizes(shape, y.device());
  grid_for(op, y.device(), y.numel(),
           Coordinate{FastDivider(static_cast<int64_t>(shape.size())), sizes.data(), places.data<int64_t>(),
                      y.data<int64_t>()});
}

}  // namespace pleat::ops
