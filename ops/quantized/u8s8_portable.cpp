#include "pleat/ops/quantized/u8s8_loops.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pleat::ops {
namespace {

/// sums[i] = a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1]
template <int bytes>
[[gnu::always_inline]] inline Vector<int32_t, bytes> add_products(const Vector<int16_t, bytes>& a,
                                                                  const Vector<int16_t, bytes>& b) {
  using Ints = Vector<int32_t, bytes>;
#if defined(__AVX512BW__)
  if constexpr (bytes == 64)
    return reinterpret_cast<Ints>(
        _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#endif
#if defined(__AVX2__)
  if constexpr (bytes == 32)
    return reinterpret_cast<Ints>(
        _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#endif
#if defined(__SSE2__)
  if constexpr (bytes == 16)
    return reinterpret_cast<Ints>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#endif
  const Ints x = reinterpret_cast<Ints>(a), y = reinterpret_cast<Ints>(b);
  return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
}

/// By 16 bits: the even bytes, and the odd ones.
struct Portable {
  static constexpr int bytes = simd::register_bytes;
  static constexpr int sums = simd::registers == 32 ? 16 : 8;
  static constexpr int strips = bytes == 64 ? 2 : 1;

  template <int size>
  struct Operand {
    Vector<int16_t, size> even, odd;
  };

  template <int size>
  [[gnu::always_inline]] static Operand<size> weights(const Vector<int8_t, size>& b) {
    const auto pairs = reinterpret_cast<Vector<int16_t, size>>(b);
    return {(pairs << 8) >> 8, pairs >> 8};
  }
  template <int size>
  [[gnu::always_inline]] static Operand<size> activations(const Vector<int32_t, size>& a) {
    const auto pairs = reinterpret_cast<Vector<uint16_t, size>>(a);
    return {reinterpret_cast<Vector<int16_t, size>>(pairs & 255),
            reinterpret_cast<Vector<int16_t, size>>(pairs >> 8)};
  }
  template <int size>
  [[gnu::always_inline]] static Vector<int32_t, size> dot(const Vector<int32_t, size>& sum,
                                                          const Operand<size>& a, const Operand<size>& b) {
    return sum + add_products<size>(a.even, b.even) + add_products<size>(a.odd, b.odd);
  }
  template <int size>
  [[gnu::always_inline]] static auto low_bytes(const Vector<int32_t, 4 * size>& x) {
    using Bytes [[gnu::vector_size(size)]] = uint8_t;
    return __builtin_convertvector(x, Bytes);
  }
  template <int size, class V>
  [[gnu::always_inline]] static Vector<float, 4 * size> to_floats(const V& x) {
    return __builtin_convertvector(x, Vector<float, 4 * size>);
  }
  /// The elements at `from`, the first `count` of them.
  template <int size, class T>
  [[gnu::always_inline]] static auto load_some(const T* from, int64_t count) {
    constexpr int bytes_of_all = size * static_cast<int>(sizeof(T));
    if (count >= size) return load<bytes_of_all>(from);
    T some[size] = {};
    std::memcpy(some, from, static_cast<std::size_t>(count) * sizeof(T));
    return load<bytes_of_all>(static_cast<const T*>(some));
  }
  template <int size, class T, class V>
  [[gnu::always_inline]] static void store_some(T* to, const V& x, int64_t count) {
    constexpr int bytes_of_all = size * static_cast<int>(sizeof(T));
    if (count >= size) return store<bytes_of_all>(to, x);
    T some[size];
    store<bytes_of_all>(some, x);
    std::memcpy(to, some, static_cast<std::size_t>(count) * sizeof(T));
  }
  template <class V>
  [[gnu::always_inline]] static V limited(const V& x, float low, float high) {
    const V lowest = V{} + low, highest = V{} + high;
    const V raised = x > lowest ? x : lowest;
    return raised < highest ? raised : highest;
  }
};

const U8S8Kernels& find_kernels() {
#if defined(__x86_64__)
  const U8S8Kernels* const found = u8s8_kernels_avx512();
  if (found != nullptr && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return *found;
#endif
  return kernels_of<Portable>;
}

}  // namespace

const U8S8Kernels& u8s8_kernels_portable() { return kernels_of<Portable>; }
const U8S8Kernels& u8s8_kernels() {
  static const U8S8Kernels& found = find_kernels();
  return found;
}

}  // namespace pleat::ops
