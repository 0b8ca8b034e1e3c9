// Private header: not installed.
#pragma once

#include "pleat/ops/conv/rows.h"

/// What kernels share that sum tiles of a convolution in vector registers.

namespace pleat::ops {

/// One vector of 64 bytes, whatever the machine makes of it, at any element's address. (Clang drops the
/// alignment of a `using` whose attributes stand behind the type.)
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
};
template <>
struct VectorOf<double> {
  using type [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
constexpr int64_t lanes = 64 / static_cast<int64_t>(sizeof(T));

/// Elements of the padded source that stay in the second-level cache beside weights and results.
inline constexpr int64_t band_elements = 64 << 10;

/// Result channels in panels of two vectors, the last of one when that suffices.
template <class T>
struct Panels {
  int64_t channels;

  int64_t padded() const { return ceil_div(channels, lanes<T>) * lanes<T>; }
  int64_t count() const { return ceil_div(padded(), 2 * lanes<T>); }
  int64_t first(int64_t panel) const { return panel * 2 * lanes<T>; }
  int vectors(int64_t panel) const { return padded() - first(panel) > lanes<T> ? 2 : 1; }
};

}  // namespace pleat::ops
