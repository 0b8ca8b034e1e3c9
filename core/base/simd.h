// Private header: not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// How the CPU's kernels use vector registers: the compiler's vector types (GCC's and Clang's, for any
/// processor), and loops over independent elements, which the compiler vectorises by itself. A library would
/// not be faster: docs/measurements.md ("One SIMD dialect").

// Before a loop whose iterations do not depend on each other, though the compiler cannot prove it: arrays
// may be the same one (in place), but do not overlap otherwise.
#if defined(__clang__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define PLEAT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define PLEAT_INDEPENDENT_ITERATIONS
#endif

#if !defined(__CUDACC__)
namespace pleat::simd {

/// Of the processor that a file is compiled for: the bytes of a vector register. Longer vectors take several,
/// which g++ moves through memory.
#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX__)
inline constexpr int register_bytes = 32;
#else
inline constexpr int register_bytes = 16;
#endif

/// How many vector registers it has.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif

/// Rows of two vectors each whose sums stay in registers beside the operands of a product.
inline constexpr int tile_rows = registers == 32 ? 8 : 6;

namespace detail {

template <class T, int bytes>
struct VectorOf {
  using type [[gnu::vector_size(bytes)]] = T;
  /// At any element's address. Clang forgets that behind a reference and in a template's parameter, so only
  /// load and store use it.
  using unaligned [[gnu::vector_size(bytes), gnu::aligned(sizeof(T)), gnu::may_alias]] = T;
};

}  // namespace detail

/// A vector of `bytes` bytes.
template <class T, int bytes = register_bytes>
using Vector = typename detail::VectorOf<T, bytes>::type;

/// A Vector<T, bytes> of the elements from[0], from[1] ..., which are aligned as elements are.
template <int bytes = register_bytes, class T>
[[gnu::always_inline]] inline Vector<T, bytes> load(const T* from) {
  return *reinterpret_cast<const typename detail::VectorOf<T, bytes>::unaligned*>(from);
}

/// Writes a Vector<T, bytes> to to[0], to[1] ..., which are aligned as elements are.
template <int bytes = register_bytes, class T>
[[gnu::always_inline]] inline void store(T* to, const Vector<T, bytes>& vector) {
  *reinterpret_cast<typename detail::VectorOf<T, bytes>::unaligned*>(to) = vector;
}

/// Elements of a Vector<T>.
template <class T>
constexpr int64_t lanes = register_bytes / static_cast<int64_t>(sizeof(T));

/// lower = a[0], b[0], a[1], b[1], ... of the lower halves, upper = the same of the upper halves. By
/// reference, as how vectors are passed depends on the registers that a file is compiled for.
template <class T, int bytes = register_bytes>
[[gnu::always_inline]] inline void interleave(const Vector<T, bytes>& a, const Vector<T, bytes>& b,
                                              Vector<T, bytes>& lower, Vector<T, bytes>& upper) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr std::size_t n = sizeof...(i);
    lower = __builtin_shufflevector(a, b, (i / 2 + i % 2 * n)...);
    upper = __builtin_shufflevector(a, b, (i / 2 + (1 + i % 2 * 2) * n / 2)...);
  }
  (std::make_index_sequence<bytes / sizeof(T)>());
}

/// f(0), f(1), ... with constants, without which an array of vectors would not stay in registers.
template <class F, int... i>
[[gnu::always_inline]] inline void for_constants(std::integer_sequence<int, i...>, const F& f) {
  (f(std::integral_constant<int, i>()), ...);
}
template <int count, class F>
[[gnu::always_inline]] inline void for_constants(const F& f) {
  for_constants(std::make_integer_sequence<int, count>(), f);
}

}  // namespace pleat::simd
#endif
