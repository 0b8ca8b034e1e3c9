// Compiled for processors that may not be the one it runs on (CMakeLists.txt): nothing here may be shared
// with other files, as inline functions are, but what is always inlined.
#include "pleat/ops/quantized/u8s8_kernels.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "pleat/ops/quantized/u8s8_loops.h"

namespace pleat::ops {
namespace {

struct Avx512 {
  static constexpr int bytes = 64;
  static constexpr int sums = 24;  ///< registers of a tile
  static constexpr int strips = 4;

  template <int size>
  using Operand = Vector<int32_t, size>;

  template <int size>
  [[gnu::always_inline]] static Operand<size> weights(const Vector<int8_t, size>& b) {
    return reinterpret_cast<Operand<size>>(b);
  }
  template <int size>
  [[gnu::always_inline]] static Operand<size> activations(const Vector<int32_t, size>& a) {
    return a;
  }
  template <int size>
  [[gnu::always_inline]] static Vector<int32_t, size> dot(const Vector<int32_t, size>& sum,
                                                          const Operand<size>& a, const Operand<size>& b) {
    if constexpr (size == 64)
      return reinterpret_cast<Operand<size>>(_mm512_dpbusd_epi32(
          reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
    else if constexpr (size == 32)
      return reinterpret_cast<Operand<size>>(_mm256_dpbusd_epi32(
          reinterpret_cast<__m256i>(sum), reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
    else
      return reinterpret_cast<Operand<size>>(_mm_dpbusd_epi32(
          reinterpret_cast<__m128i>(sum), reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
  }
  template <int size>
  [[gnu::always_inline]] static Vector<uint8_t, size> low_bytes(const Vector<int32_t, 4 * size>& x) {
    return reinterpret_cast<Vector<uint8_t, size>>(_mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(x)));
  }
  template <int size>
  [[gnu::always_inline]] static Vector<float, 4 * size> to_floats(const Vector<uint8_t, size>& x) {
    return reinterpret_cast<Vector<float, 4 * size>>(
        _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(reinterpret_cast<__m128i>(x))));
  }
  /// The elements at `from`, the first `count` of them; 0.
  template <int size>
  [[gnu::always_inline]] static Vector<float, 4 * size> load_some(const float* from, int64_t count) {
    return reinterpret_cast<Vector<float, 4 * size>>(_mm512_maskz_loadu_ps(mask(count), from));
  }
  template <int size>
  [[gnu::always_inline]] static Vector<uint8_t, size> load_some(const uint8_t* from, int64_t count) {
    return reinterpret_cast<Vector<uint8_t, size>>(_mm_maskz_loadu_epi8(mask(count), from));
  }
  template <int size>
  [[gnu::always_inline]] static void store_some(float* to, const Vector<float, 4 * size>& x, int64_t count) {
    _mm512_mask_storeu_ps(to, mask(count), reinterpret_cast<__m512>(x));
  }
  template <int size>
  [[gnu::always_inline]] static void store_some(uint8_t* to, const Vector<uint8_t, size>& x, int64_t count) {
    if (count >= size)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(x));
    else
      _mm_mask_storeu_epi8(to, mask(count), reinterpret_cast<__m128i>(x));
  }
  [[gnu::always_inline]] static __mmask16 mask(int64_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1);
  }
  [[gnu::always_inline]] static Vector<float, 64> limited(const Vector<float, 64>& x, float low, float high) {
    return reinterpret_cast<Vector<float, 64>>(
        _mm512_min_ps(_mm512_max_ps(reinterpret_cast<__m512>(x), _mm512_set1_ps(low)), _mm512_set1_ps(high)));
  }
};

}  // namespace

const U8S8Kernels* u8s8_kernels_avx512() { return &kernels_of<Avx512>; }

}  // namespace pleat::ops
#else
namespace pleat::ops {

const U8S8Kernels* u8s8_kernels_avx512() { return nullptr; }

}  // namespace pleat::ops
#endif
