#include <utility>

#include "pleat/core/base/processor.h"
#include "pleat/ops/quantized/u8s8_loops.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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
#elif defined(__aarch64__)
  if constexpr (bytes == 16) {
    const auto x = reinterpret_cast<int16x8_t>(a), y = reinterpret_cast<int16x8_t>(b);
    return reinterpret_cast<Ints>(
        vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
  }
#endif
  const Ints x = reinterpret_cast<Ints>(a), y = reinterpret_cast<Ints>(b);
  return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16);
}

/// By 16 bits: the even bytes, and the odd ones.
struct Portable : CompilersVectors {
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
};

const U8S8Kernels& find_kernels() {
  using enum Instructions;
  for (const auto& [instructions, kernels] : {std::pair{avx512_vnni, &u8s8_kernels_avx512},
                                              {arm_i8mm, &u8s8_kernels_i8mm},
                                              {arm_dotprod, &u8s8_kernels_dotprod}})
    if (kernels() != nullptr && processor_has(instructions)) return *kernels();
  return kernels_of<Portable>;
}

}  // namespace

const U8S8Kernels& u8s8_kernels_portable() { return kernels_of<Portable>; }
const U8S8Kernels& u8s8_kernels() {
  static const U8S8Kernels& found = find_kernels();
  return found;
}

}  // namespace pleat::ops
