// Compiled for processors that may not be the one it runs on (CMakeLists.txt): nothing here may be shared
// with other files, as inline functions are, but what is always inlined.
#include "pleat/ops/matmul/gemm_bfloat16_kernels.h"

#if defined(__AVX512BF16__)
#include <type_traits>

#include <immintrin.h>

#include "pleat/core/base/simd.h"

namespace pleat::ops {
namespace {

using simd::for_constants;

constexpr int lanes_of_vector = 16;

/// The lowest `count` of 16 or 32 bits.
__mmask16 mask16(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
__mmask32 mask32(int64_t count) { return static_cast<__mmask32>((uint64_t{1} << count) - 1); }

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/// 16 numbers, those outside of the mask 0, as the upper halves of 32 bits.
__m512i widen(const void* x, __mmask16 mask) {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, x)), 16);
}

void pack_rows_of_size(const BFloat16Packing& p) {
  using V = simd::Vector<uint16_t>;
  for (int64_t d = 0; d < p.k; d += 2) {
    const BFloat16* const x = p.x + d * p.leading;
    uint32_t* const pairs = p.pairs + d / 2 * p.width;
    for (int64_t i = 0; i < p.width; i += 2 * lanes_of_vector) {
      __builtin_prefetch(x + p.ahead + i, 0, 2);
      __builtin_prefetch(x + p.ahead + p.leading + i, 0, 2);
      const __mmask32 mask = mask32(least(p.size - i, 2 * lanes_of_vector));
      const __m512i even = _mm512_maskz_loadu_epi16(mask, x + i);
      const __m512i odd =
          d + 1 < p.k ? _mm512_maskz_loadu_epi16(mask, x + p.leading + i) : _mm512_setzero_si512();
      V lower, upper;
      simd::interleave<uint16_t>(reinterpret_cast<V>(even), reinterpret_cast<V>(odd), lower, upper);
      simd::store(reinterpret_cast<uint16_t*>(pairs + i), lower);
      if (i + lanes_of_vector < p.width)
        simd::store(reinterpret_cast<uint16_t*>(pairs + i + lanes_of_vector), upper);
    }
  }
}

/// By squares of 16 rows and 16 pairs, transposed in four rounds that interleave both halves.
void pack_rows_of_k(const BFloat16Packing& p) {
  using V = simd::Vector<uint32_t>;
  for (int64_t i = 0; i < p.width; i += lanes_of_vector)
    for (int64_t d = 0; d < p.k; d += 2 * lanes_of_vector) {
      const int64_t rows = least(p.size - i, lanes_of_vector);
      const __mmask32 mask = mask32(least(p.k - d, 2 * lanes_of_vector));
      const BFloat16* const x = p.x + i * p.leading + d;
      V square[2][lanes_of_vector];
      for_constants<lanes_of_vector>([&](auto row) {
        const __m512i loaded =
            row < rows ? _mm512_maskz_loadu_epi16(mask, x + row * p.leading) : _mm512_setzero_si512();
        square[0][row] = reinterpret_cast<V>(loaded);
      });
      for_constants<4>([&](auto round) {
        constexpr int from = round % 2;
        for_constants<lanes_of_vector / 2>([&](auto row) {
          simd::interleave<uint32_t>(square[from][row], square[from][row + lanes_of_vector / 2],
                                     square[1 - from][2 * row], square[1 - from][2 * row + 1]);
        });
      });
      uint32_t* const pairs = p.pairs + d / 2 * p.width + i;
      const int64_t count = least((p.k - d + 1) / 2, lanes_of_vector);
      for (int64_t pair = 0; pair < count; ++pair) simd::store(pairs + pair * p.width, square[0][pair]);
    }
}

void pack(const BFloat16Packing& p) { p.rows_of_k ? pack_rows_of_k(p) : pack_rows_of_size(p); }

/// A pair of a in every lane.
__m512bh repeat(const char* pair) {
  int bits;
  __builtin_memcpy(&bits, pair, sizeof(bits));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}

/// The sums of `rows` rows, from a on, with a panel of `vectors` vectors.
template <int vectors, int rows>
void multiply_tile(const BFloat16Panel& p, const char* a, float* sums) {
  __m512 total[rows][vectors];
  for_constants<rows>(
      [&](auto i) { for_constants<vectors>([&](auto v) { total[i][v] = _mm512_setzero_ps(); }); });
  const uint32_t* b = p.b;
  for (int64_t d = 0; d < p.pairs; ++d, a += p.a_pair, b += vectors * lanes_of_vector) {
    __m512bh lane[vectors];
    for_constants<vectors>(
        [&](auto v) { lane[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * lanes_of_vector)); });
    for_constants<rows>([&](auto i) {
      const __m512bh element = repeat(a + i * p.a_row);
      for_constants<vectors>([&](auto v) { total[i][v] = _mm512_dpbf16_ps(total[i][v], element, lane[v]); });
    });
  }
  for_constants<rows>([&](auto i) {
    for_constants<vectors>(
        [&](auto v) { _mm512_store_ps(sums + i * pair_columns + v * lanes_of_vector, total[i][v]); });
  });
}

void store(float* c, __mmask16 mask, __m512 value) { _mm512_mask_storeu_ps(c, mask, value); }
void store(BFloat16* c, __mmask16 mask, __m512 value) {
  _mm256_mask_storeu_epi16(c, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
}
__m512 load(const float* c, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, c); }
__m512 load(const BFloat16* c, __mmask16 mask) { return _mm512_castsi512_ps(widen(c, mask)); }

/// c = alpha sums (+ c), rounded to Out.
template <class Out>
void store_tile(const BFloat16Panel& p, const float* sums, int64_t rows, Out* c) {
  const __m512 alpha = _mm512_set1_ps(p.alpha);
  for (int64_t i = 0; i < rows; ++i, sums += pair_columns, c += p.ldc)
    for (int64_t j = 0; j < p.n; j += lanes_of_vector) {
      const __mmask16 mask = mask16(least(p.n - j, lanes_of_vector));
      __m512 value = _mm512_mul_ps(_mm512_load_ps(sums + j), alpha);
      if (p.accumulate) value = _mm512_add_ps(value, load(c + j, mask));
      store(c + j, mask, value);
    }
}

/// Rows of a tile, so many that registers hold its sums.
constexpr int most_rows(int vectors) { return vectors <= 2 ? 12 : 24 / vectors; }

using Tile = void (*)(const BFloat16Panel&, const char*, float*);

/// The kernel for `count` rows, which are `rows` at most.
template <int vectors, int rows = most_rows(vectors)>
Tile find_tile(int64_t count) {
  if constexpr (rows > 1)
    return count == rows ? multiply_tile<vectors, rows> : find_tile<vectors, rows - 1>(count);
  else
    return multiply_tile<vectors, 1>;
}

/// All rows, in tiles of about equal size.
template <class Out, int vectors>
void multiply_rows(const BFloat16Panel& p) {
  const int64_t tiles = (p.m + most_rows(vectors) - 1) / most_rows(vectors);
  alignas(64) float sums[most_rows(vectors) * pair_columns];
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = p.m * t / tiles;
    const int64_t rows = p.m * (t + 1) / tiles - first;
    find_tile<vectors>(rows)(p, static_cast<const char*>(p.a) + first * p.a_row, sums);
    store_tile(p, sums, rows, static_cast<Out*>(p.c) + first * p.ldc);
  }
}

template <class Out>
void multiply(const BFloat16Panel& p) {
  static constexpr void (*kernels[])(const BFloat16Panel&) = {multiply_rows<Out, 1>, multiply_rows<Out, 2>,
                                                              multiply_rows<Out, 3>, multiply_rows<Out, 4>};
  kernels[(p.n - 1) / lanes_of_vector](p);
}

}  // namespace

const BFloat16Kernels* bfloat16_kernels_avx512() {
  static constexpr BFloat16Kernels kernels{pack, multiply<float>, multiply<BFloat16>};
  return &kernels;
}

}  // namespace pleat::ops
#else
namespace pleat::ops {

const BFloat16Kernels* bfloat16_kernels_avx512() { return nullptr; }

}  // namespace pleat::ops
#endif
