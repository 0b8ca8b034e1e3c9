#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "pleat/core/kernels/dispatch_size.h"
#include "pleat/core/kernels/host_array.h"
#include "pleat/core/kernels/launch.h"
#include "pleat/core/kernels/load_as.h"
#include "pleat/core/kernels/number_array.h"
#include "pleat/core/kernels/offsets.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/core/tensor/number.h"
#include "pleat/ops/elementwise/types.h"
#include "pleat/ops/index/cub_call.h"
#include "pleat/ops/index/index_cuda.h"
#include "pleat/ops/index/ordered_lines.h"

namespace pleat::ops {
namespace {

/// The index arithmetic of index.h. T is any type of an element's size where elements are only moved.
/// One element of y a call, which is row-major like the index.
template <class T>
struct GatherElement {
  ElementOffsets<1> x_at;  ///< without the dimension of the index
  int64_t x_step;
  const int64_t* index;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { y[i] = x[x_at.at(i)[0] + index[i] * x_step]; }
};

/// Lines along a dimension of index, source and y.
struct IndexLines {
  ElementOffsets<3> start;
  std::array<int64_t, 3> step;
  int64_t n;
};

/// One line a call: y gets what the source has for it.
template <class T>
struct ScatterLine {
  IndexLines lines;
  const int64_t* index;
  const T* source;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t line) const {
    const auto start = lines.start.at(line);
    for (int64_t i = 0; i < lines.n; ++i)
      y[start[2] + index[start[0] + i * lines.step[0]] * lines.step[2]] =
          source[start[1] + i * lines.step[1]];
  }
};
/// The same with folds, in the order of the line.
template <class T, class Fold>
struct ScatterFoldLine {
  IndexLines lines;
  const int64_t* index;
  NumberArray<T> source;
  T* y;
  Fold fold;

  PLEAT_HOST_DEVICE void operator()(int64_t line) const {
    const auto start = lines.start.at(line);
    for (int64_t i = 0; i < lines.n; ++i) {
      T& result = y[start[2] + index[start[0] + i * lines.step[0]] * lines.step[2]];
      result = fold(result, static_cast<T>(source.load(start[1] + i * lines.step[1])));
    }
  }
};

/// The place in y's memory where element i of the index, row-major, goes.
struct Destination {
  ElementOffsets<1> y_at;  ///< without the dimension of the index
  int64_t y_step;
  const int64_t* index;
  int64_t* key;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { key[i] = y_at.at(i)[0] + index[i] * y_step; }
};

/// The last of each run of equal sorted keys is written to y[key].
template <class T>
struct ScatterRun {
  const int64_t* key;
  const int64_t* order;
  int64_t n;
  const T* source;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    if (i + 1 == n || key[i + 1] != key[i]) y[key[i]] = source[order[i]];
  }
};

/// Folded into y [outer, rows, inner] are, for each run of equal sorted keys, the rows of values
/// [outer, n, inner] that the order names, in its order. A call is `width` neighbours of a row of values;
/// those at the head of a run do the work.
template <class T, class Fold, int width>
struct FoldRun {
  const int64_t* key;
  const int64_t* order;
  int64_t rows;
  FastDivider n, inner;  ///< `width` at once
  NumberArray<T> values;
  NumberArray<T> y;
  Fold fold;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t j = i;
    int64_t k = inner.divide(j);
    const int64_t o = n.divide(k);
    const int64_t row = key[k];
    if (k > 0 && key[k - 1] == row) return;
    const int64_t at = ((o * rows + row) * inner.divisor() + j) * width;
    T result[width];
    y.template load<width>(at, result);
    const auto load = [&](int64_t m, T* value) {
      values.template load<width>(((o * n.divisor() + order[m]) * inner.divisor() + j) * width, value);
    };
    const auto add = [&](const T* value) {
      PLEAT_UNROLL
      for (int lane = 0; lane < width; ++lane) result[lane] = fold(result[lane], value[lane]);
    };
    // Of a long run, as of a padding token, several are waited for together.
    constexpr int64_t at_once = width == half_width ? 4 : 8;
    for (; k + at_once <= n.divisor() && key[k + at_once - 1] == row; k += at_once) {
      T some[at_once][width];
      PLEAT_UNROLL
      for (int64_t m = 0; m < at_once; ++m) load(k + m, some[m]);
      PLEAT_UNROLL
      for (int64_t m = 0; m < at_once; ++m) add(some[m]);
    }
    for (; k < n.divisor() && key[k] == row; ++k) {
      T value[width];
      load(k, value);
      add(value);
    }
    y.template store<width>(at, result);
  }
};

/// One element of y [outer, n, inner] from x [outer, rows, inner], or several as one.
template <class T>
struct SelectElement {
  const int64_t* index;
  int64_t rows;
  FastDivider n, inner;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t j = i;
    int64_t k = inner.divide(j);
    const int64_t o = n.divide(k);
    y[i] = x[(o * rows + index[k]) * inner.divisor() + j];
  }
};

/// One element of y [..., classes].
template <class T>
struct OneHotElement {
  const int64_t* index;
  FastDivider classes;
  T one;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t at = i;
    const int64_t row = classes.divide(at);
    y[i] = at == index[row] ? one : T(0);
  }
};

/// One coordinate of one place, in a shape of `rank` dimensions whose sizes are divided from the last on.
struct Coordinate {
  FastDivider rank;
  const int64_t* size;
  const int64_t* places;
  int64_t* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t wanted = i;
    int64_t place = places[rank.divide(wanted)];
    for (int64_t d = rank.divisor() - 1; d > wanted; --d) place /= size[d];
    y[i] = place % size[wanted];
  }
};

/// Lines so short, or so many, that a thread works through each of them.
bool has_threads_for_lines(int64_t lines, int64_t n) { return n <= 32 || lines >= 16384; }

int bits_of(int64_t limit) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(limit < 1 ? 1 : limit)));
}

Shape without(Shape values, std::size_t dim) {
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(dim));
  return values;
}

Strides with_zero(Strides strides, std::size_t dim) {
  strides[dim] = 0;
  return strides;
}

IndexLines lines_along(const char* op, std::size_t dim, const Tensor& indices, const Tensor& source,
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
  launch_indices(op, y.device(), keys.numel(), functor);
  return order_lines(op, keys, 1, keys.numel(), bits_of(y.numel()));
}

template <class T>
T* bits(const Tensor& t) {
  return reinterpret_cast<T*>(t.raw());
}

/// Folds rows by their sorted keys.
template <class T, int width = 1, class Fold>
void fold_runs(const char* op, const OrderedLines& runs, const Tensor& values, const Tensor& y, int64_t rows,
               int64_t inner, Fold fold) {
  const FoldRun<T, Fold, width> functor{runs.keys.data<int64_t>(),
                                        runs.order.data<int64_t>(),
                                        rows,
                                        FastDivider(runs.keys.numel()),
                                        FastDivider(inner / width),
                                        NumberArray<T>(values),
                                        NumberArray<T>(y),
                                        fold};
  launch_indices(op, y.device(), values.numel() / width, functor);
}

/// Whether rows of so many elements, one behind the other, are a FoldRun's of vectors.
bool consists_of_vectors(const Tensor& t, int64_t inner, uint32_t width) {
  const auto bytes = static_cast<std::uintptr_t>(width * size_of(t.dtype()));
  return (width == vector_width || is_half(t.dtype())) && inner % width == 0 &&
         reinterpret_cast<std::uintptr_t>(t.raw()) % bytes == 0;
}

/// Calls f(Type<T>{}) with the widest T of which rows of so many bytes consist, from all these addresses on.
template <class F>
void by_words(int64_t bytes, std::initializer_list<const void*> starts, const F& f) {
  auto all = static_cast<std::uintptr_t>(bytes);
  for (const void* start : starts) all |= reinterpret_cast<std::uintptr_t>(start);
  if (all % 16 == 0) return f(Type<Vector<uint32_t, 4>>{});
  if (all % 8 == 0) return f(Type<uint64_t>{});
  if (all % 4 == 0) return f(Type<uint32_t>{});
  if (all % 2 == 0) return f(Type<uint16_t>{});
  f(Type<uint8_t>{});
}

}  // namespace

void gather_cuda(const Tensor& x, std::size_t dim, const Tensor& indices, const Tensor& y) {
  dispatch_size(x.dtype(), [&]<class T>(Type<T>) {
    const GatherElement<T> functor{
        row_major_offsets<1>("gather", indices.shape(), {with_zero(x.strides(), dim)}), x.strides()[dim],
        indices.data<int64_t>(), bits<T>(x), bits<T>(y)};
    launch_indices("gather", y.device(), y.numel(), functor);
  });
}

void scatter_cuda(const Tensor& y, std::size_t dim, const Tensor& indices, const Tensor& source) {
  if (indices.numel() == 0) return;
  const int64_t n = indices.shape()[dim];
  const int64_t lines = indices.numel() / n;
  if (has_threads_for_lines(lines, n))
    return dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
      const ScatterLine<T> functor{lines_along("scatter", dim, indices, source, y), indices.data<int64_t>(),
                                   bits<T>(source), bits<T>(y)};
      launch_indices("scatter", y.device(), lines, functor);
    });
  const OrderedLines runs = destinations("scatter", dim, indices, y);
  const Tensor values = to_format(source, MemoryFormat::contiguous);
  dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
    const ScatterRun<T> functor{runs.keys.data<int64_t>(), runs.order.data<int64_t>(), indices.numel(),
                                bits<T>(values), bits<T>(y)};
    launch_indices("scatter", y.device(), indices.numel(), functor);
  });
}

void scatter_fold_cuda(const char* op, const Tensor& y, std::size_t dim, const Tensor& indices,
                       const Tensor& source, ScatterFold fold) {
  if (indices.numel() == 0) return;
  const int64_t n = indices.shape()[dim];
  const int64_t lines = indices.numel() / n;
  dispatch_fold(fold, [&]<class Fold>(Fold functor) {
    Numbers::dispatch(y.dtype(), [&]<class T>(Type<T>) {
      if (has_threads_for_lines(lines, n))
        return launch_indices(
            op, y.device(), lines,
            ScatterFoldLine<T, Fold>{lines_along(op, dim, indices, source, y), indices.data<int64_t>(),
                                     NumberArray<T>(source), bits<T>(y), functor});
      fold_runs<T>(op, destinations(op, dim, indices, y), to_format(source, MemoryFormat::contiguous), y,
                   y.numel(), 1, functor);
    });
  });
}

void index_select_cuda(const Tensor& x, const Tensor& indices, const Tensor& y, int64_t rows, int64_t inner) {
  const int64_t bytes = inner * size_of(x.dtype());
  by_words(bytes, {x.raw(), y.raw()}, [&]<class T>(Type<T>) {
    const int64_t words = bytes / static_cast<int64_t>(sizeof(T));
    const SelectElement<T> functor{indices.data<int64_t>(), rows,       FastDivider(indices.numel()),
                                   FastDivider(words),      bits<T>(x), bits<T>(y)};
    launch_indices("index_select", y.device(),
                   y.numel() * size_of(y.dtype()) / static_cast<int64_t>(sizeof(T)), functor);
  });
}

void index_add_cuda(const Tensor& y, const Tensor& indices, const Tensor& values, int64_t rows,
                    int64_t inner) {
  if (values.numel() == 0) return;
  const OrderedLines runs = order_lines("index_add", indices, 1, indices.numel(), bits_of(rows));
  Numbers::dispatch(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, float>) {
      const auto are_vectors = [&](uint32_t width) {
        return consists_of_vectors(values, inner, width) && consists_of_vectors(y, inner, width);
      };
      if (are_vectors(half_width))
        return fold_runs<T, half_width>("index_add", runs, values, y, rows, inner, Plus{});
      if (are_vectors(vector_width))
        return fold_runs<T, vector_width>("index_add", runs, values, y, rows, inner, Plus{});
    }
    fold_runs<T>("index_add", runs, values, y, rows, inner, Plus{});
  });
}

void one_hot_cuda(const Tensor& indices, int64_t classes, const Tensor& y) {
  uint64_t one = 0;
  dispatch(y.dtype(), [&]<class T>(Type<T>) {
    const T value = Number(1).to<T>();
    std::memcpy(&one, &value, sizeof(T));
  });
  dispatch_size(y.dtype(), [&]<class T>(Type<T>) {
    T pattern;
    std::memcpy(&pattern, &one, sizeof(T));
    launch_indices("one_hot", y.device(), y.numel(),
                   OneHotElement<T>{indices.data<int64_t>(), FastDivider(classes), pattern, bits<T>(y)});
  });
}

Tensor places_cuda(const char* op, const Tensor& flags) {
  const int64_t n = flags.numel();
  check_cub_size(op, n);
  const Tensor places = empty({n}, {.dtype = int64, .device = flags.device()});
  const Tensor found = zeros({1}, {.dtype = int64, .device = flags.device()});
  if (n > 0)
    cub_call(op, flags.device(), [&](void* memory, std::size_t& bytes, cudaStream_t stream) {
      return cub::DeviceSelect::Flagged(memory, bytes, thrust::counting_iterator<int64_t>(0),
                                        flags.data<bool>(), places.data<int64_t>(), found.data<int64_t>(), n,
                                        stream);
    });
  return copy(places.as_strided({found.item<int64_t>()}, {1}, 0));
}

void coordinates_cuda(const char* op, const Tensor& places, const Shape& shape, const Tensor& y) {
  const HostArray<int64_t> sizes(std::span<const int64_t>(shape), y.device());
  launch_indices(op, y.device(), y.numel(),
                 Coordinate{FastDivider(static_cast<int64_t>(shape.size())), sizes.data(),
                            places.data<int64_t>(), y.data<int64_t>()});
}

}  // namespace pleat::ops
