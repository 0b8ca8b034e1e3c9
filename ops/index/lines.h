// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/shape.h"

namespace pleat::ops {

/// The dimension in which neighbours of lines along `dim` are taken: the last one, or the one before it.
inline std::size_t side_of(std::size_t rank, std::size_t dim) {
  return dim + 1 < rank ? rank - 1 : dim - (dim > 0 ? 1 : 0);
}

/// Calls `f(offsets, count)` for `count` neighbours at a time of the lines along `dim` of a tensor of
/// `shape`, in parallel; offsets[k] is where the first line starts in an operand of strides[k].
template <std::size_t K, class F>
void for_each_lines(const Shape& shape, std::size_t dim, const std::array<Strides, K>& strides, const F& f) {
  struct Dim {
    int64_t size;
    std::array<int64_t, K> step;
  };
  const std::size_t side = side_of(shape.size(), dim);
  const int64_t side_by_side = side == dim ? 1 : shape[side];
  // Some cache lines; of lines along the last dimension few enough that threads share long ones.
  constexpr int64_t most = 64;
  const int64_t widest = side > dim ? most : std::clamp<int64_t>(8192 / (shape[dim] + 1), 1, most);
  const int64_t count = std::min(side_by_side, widest);
  if (shape[dim] == 0 || count == 0) return;
  // From the innermost: pieces of that dimension, then the others.
  std::vector<Dim> dims{{(side_by_side + count - 1) / count, {}}};
  for (std::size_t k = 0; k < K; ++k) dims[0].step[k] = count * strides[k][side];
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (d == dim || d == side) continue;
    dims.push_back({shape[d], {}});
    for (std::size_t k = 0; k < K; ++k) dims.back().step[k] = strides[k][d];
  }
  int64_t pieces = 1;
  for (const Dim& one : dims) pieces *= one.size;
  const int64_t grain = std::max<int64_t>(1, 8192 / (shape[dim] * count));
  parallel_for(0, pieces, grain, [&](int64_t first, int64_t last) {
    std::vector<int64_t> index;
    std::array<int64_t, K> offsets{};
    int64_t rest = first;
    for (const Dim& one : dims) {
      index.push_back(rest % one.size);
      rest /= one.size;
      for (std::size_t k = 0; k < K; ++k) offsets[k] += index.back() * one.step[k];
    }
    for (int64_t piece = first; piece < last; ++piece) {
      f(offsets, std::min(count, side_by_side - index[0] * count));
      for (std::size_t d = 0; d < dims.size(); ++d) {
        const bool wraps = ++index[d] == dims[d].size;
        for (std::size_t k = 0; k < K; ++k)
          offsets[k] += wraps ? dims[d].step[k] * (1 - dims[d].size) : dims[d].step[k];
        if (!wraps) break;
        index[d] = 0;
      }
    }
  });
}

/// Calls `f(offsets)` for each line along `dim` of a tensor of `shape`, in parallel; offsets[k] is where the
/// line starts in an operand of strides[k].
template <std::size_t K, class F>
void for_each_line(const Shape& shape, std::size_t dim, const std::array<Strides, K>& strides, const F& f) {
  const std::size_t side = side_of(shape.size(), dim);
  for_each_lines<K>(shape, dim, strides, [&](const auto& starts, int64_t count) {
    auto start = starts;
    for (int64_t j = 0; j < count; ++j) {
      f(start);
      for (std::size_t k = 0; k < K; ++k) start[k] += strides[k][side];
    }
  });
}

/// Calls `f(places)` for each element of a tensor of `shape`, in parallel, but the lines along `dim` each by
/// one thread and in order; places[k] is where the element lies in an operand of strides[k]. The last operand
/// has no step along `dim`.
template <std::size_t K, class F>
void for_each_in_lines(const Shape& shape, std::size_t dim, const std::array<Strides, K>& strides,
                       const F& f) {
  using Places = std::array<int64_t, K>;
  const auto steps_of = [&](std::size_t d) {
    Places steps;
    for (std::size_t k = 0; k < K; ++k) steps[k] = strides[k][d];
    return steps;
  };
  const Places along = steps_of(dim);
  const Places across = steps_of(side_of(shape.size(), dim));
  const auto dense = [](bool last_too) {
    Places steps;
    steps.fill(1);
    if (!last_too) steps[K - 1] = 0;
    return steps;
  };
  const bool dense_along = along == dense(false);
  const bool dense_across = across == dense(true);
  const auto run = [&](const Places& start, const Places& step, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      Places at = start;
      for (std::size_t k = 0; k < K; ++k) at[k] += i * step[k];
      f(at);
    }
  };
  const int64_t length = shape[dim];
  const bool is_last = dim + 1 == shape.size();
  for_each_lines<K>(shape, dim, strides, [&](const Places& start, int64_t count) {
    // Constants where operands are dense, which makes plain loops of these.
    Places row = start;
    if (is_last || count == 1) {
      for (int64_t j = 0; j < count; ++j) {
        dense_along ? run(row, dense(false), length) : run(row, along, length);
        for (std::size_t k = 0; k < K; ++k) row[k] += across[k];
      }
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      dense_across ? run(row, dense(true), count) : run(row, across, count);
      for (std::size_t k = 0; k < K; ++k) row[k] += along[k];
    }
  });
}

}  // namespace pleat::ops
