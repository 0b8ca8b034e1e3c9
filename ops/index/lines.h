// Private header: not installed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/shape.h"

namespace pleat::ops {

/// Calls `f(offsets)` for each line along `dim` of a tensor of `shape`, in parallel; offsets[k] is where the
/// line starts in an operand of strides[k].
template <std::size_t K, class F>
void for_each_line(const Shape& shape, std::size_t dim, const std::array<Strides, K>& strides, const F& f) {
  const int64_t length = shape[dim];
  int64_t lines = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != dim) lines *= shape[d];
  if (length == 0) return;
  parallel_for(0, lines, std::max<int64_t>(1, 8192 / length), [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      std::array<int64_t, K> offsets{};
      int64_t rest = line;
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (d == dim) continue;
        const int64_t i = rest % shape[d];
        rest /= shape[d];
        for (std::size_t k = 0; k < K; ++k) offsets[k] += i * strides[k][d];
      }
      f(offsets);
    }
  });
}

}  // namespace pleat::ops
