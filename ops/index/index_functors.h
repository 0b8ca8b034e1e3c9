// Private header: not installed.
#pragma once

#include <array>
#include <cstdint>

#include "pleat/core/grid_offsets.h"
#include "pleat/core/number_array.h"
#include "pleat/ops/elementwise/arithmetic_functors.h"

/// The index arithmetic of index.h. T is any type of an element's size where elements are only moved.

namespace pleat::ops {

/// One element of y a call, which is row-major like the index.
template <class T>
struct GatherElement {
  GridOffsets<1> x_at;  ///< without the dimension of the index
  int64_t x_step;
  const int64_t* index;
  const T* x;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const { y[i] = x[x_at.at(i)[0] + index[i] * x_step]; }
};

/// Lines along a dimension of index, source and y.
struct Lines {
  GridOffsets<3> start;
  std::array<int64_t, 3> step;
  int64_t n;
};

/// One line a call: y gets what the source has for it.
template <class T>
struct ScatterLine {
  Lines lines;
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
/// The same with sums, in the order of the line.
template <class T>
struct ScatterAddLine {
  Lines lines;
  const int64_t* index;
  NumberArray<T> source;
  T* y;

  PLEAT_HOST_DEVICE void operator()(int64_t line) const {
    const auto start = lines.start.at(line);
    for (int64_t i = 0; i < lines.n; ++i) {
      T& sum = y[start[2] + index[start[0] + i * lines.step[0]] * lines.step[2]];
      sum = Plus{}(sum, static_cast<T>(source.load(start[1] + i * lines.step[1])));
    }
  }
};

/// The place in y's memory where element i of the index, row-major, goes.
struct Destination {
  GridOffsets<1> y_at;  ///< without the dimension of the index
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

/// y [outer, rows, inner] gets, for each run of equal sorted keys, the sum of the rows of values
/// [outer, n, inner] that the order names, in its order. A call is an element of a row of values; the one at
/// the head of a run does the work.
template <class T>
struct AddRun {
  const int64_t* key;
  const int64_t* order;
  int64_t rows;
  FastDivider n, inner;
  NumberArray<T> values;
  NumberArray<T> y;

  PLEAT_HOST_DEVICE void operator()(int64_t i) const {
    int64_t j = i;
    int64_t k = inner.divide(j);
    const int64_t o = n.divide(k);
    const int64_t row = key[k];
    if (k > 0 && key[k - 1] == row) return;
    const int64_t at = (o * rows + row) * inner.divisor() + j;
    T sum = y.load(at);
    for (; k < n.divisor() && key[k] == row; ++k)
      sum = Plus{}(sum, values.load((o * n.divisor() + order[k]) * inner.divisor() + j));
    y.store(at, sum);
  }
};

/// One element of y [outer, n, inner] from x [outer, rows, inner].
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

}  // namespace pleat::ops
