// Private header: not installed.
#pragma once

#include <type_traits>
#include <utility>

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

/// f(0), f(1), ...: with constants, without which an array of vectors would not stay in registers.
template <class F, int... i>
[[gnu::always_inline]] inline void for_constants(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int count, class F>
[[gnu::always_inline]] inline void for_constants(const F& f) {
  for_constants(std::make_integer_sequence<int, count>(), f);
}

}  // namespace pleat::ops
