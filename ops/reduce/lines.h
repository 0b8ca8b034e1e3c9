// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/tensor.h"

namespace pleat::ops {

/// A dense tensor seen from one dimension: in memory it is [outer, size, inner], whatever the order of its
/// dimensions.
struct Lines {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  Lines() = default;
  /// Throws IndexError naming `op`.
  Lines(const char* op, const Tensor& x, int64_t dim) {
    const auto d = static_cast<std::size_t>(normalize_dim(dim, x.rank(), op));
    if (x.rank() == 0) return;
    size = x.shape()[d];
    if (size > 1) inner = x.strides()[d];
    outer = x.numel() > 0 ? x.numel() / size / inner : 0;
  }
};

/// x itself when it lies without gaps, else a copy that does.
inline Tensor dense(const Tensor& x) { return x.is_dense() ? x : copy(x); }

}  // namespace pleat::ops
