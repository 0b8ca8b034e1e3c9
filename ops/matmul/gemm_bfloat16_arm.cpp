// Compiled for processors that may not be the one it runs on, as gemm_bfloat16_avx512.cpp.
#include "pleat/ops/matmul/gemm_bfloat16_kernels.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "pleat/core/base/simd.h"

namespace pleat::ops {
namespace {

using simd::for_constants;

constexpr int64_t lanes = 4;
constexpr int64_t tile_columns = 16;
constexpr int vectors = tile_columns / lanes;
constexpr int64_t tile_rows = 6;  ///< their sums are 24 of 32 registers

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void pack(const BFloat16Packing& p) {
  const int64_t row = p.rows_of_k ? p.leading : 1, depth = p.rows_of_k ? 1 : p.leading;
  for (int64_t first = 0; first < p.width; first += tile_columns)  // a line of the cache of each pair
    for (int64_t d = 0; d < p.k; d += 2) {
      uint32_t* const pairs = p.pairs + d / 2 * p.width + first;
      for (int64_t i = 0; i < tile_columns; ++i) {
        const BFloat16* const x = p.x + (first + i) * row + d * depth;
        const bool is_inside = first + i < p.size;
        const uint32_t lower = is_inside ? x[0].bits : 0;
        const uint32_t upper = is_inside && d + 1 < p.k ? x[depth].bits : 0;
        pairs[i] = lower | upper << 16;
      }
    }
}

/// Sums of `rows` rows, from a on, and 16 columns, from b on.
template <int rows>
void multiply_tile(const BFloat16Panel& p, const char* a, const uint32_t* b, int64_t b_pair, float* sums) {
  float32x4_t total[rows][vectors];
  for_constants<rows>([&](auto i) { for_constants<vectors>([&](auto v) { total[i][v] = vdupq_n_f32(0); }); });
  for (int64_t d = 0; d < p.pairs; ++d, a += p.a_pair, b += b_pair) {
    bfloat16x8_t lane[vectors];
    for_constants<vectors>([&](auto v) { lane[v] = vreinterpretq_bf16_u32(vld1q_u32(b + v * lanes)); });
    for_constants<rows>([&](auto i) {
      uint32_t pair;
      __builtin_memcpy(&pair, a + i * p.a_row, sizeof(pair));
      const bfloat16x4_t element = vreinterpret_bf16_u32(vcreate_u32(pair));
      for_constants<vectors>(
          [&](auto v) { total[i][v] = vbfdotq_lane_f32(total[i][v], lane[v], element, 0); });
    });
  }
  for_constants<rows>([&](auto i) {
    for_constants<vectors>([&](auto v) { vst1q_f32(sums + i * tile_columns + v * lanes, total[i][v]); });
  });
}

float32x4_t widen(const float* c) { return vld1q_f32(c); }
float32x4_t widen(const BFloat16* c) {
  return vcvt_f32_bf16(vreinterpret_bf16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(c))));
}
void narrow(float32x4_t value, float* c) { vst1q_f32(c, value); }
void narrow(float32x4_t value, BFloat16* c) {
  vst1_u16(reinterpret_cast<uint16_t*>(c), vreinterpret_u16_bf16(vcvt_bf16_f32(value)));
}

/// c = alpha sums (+ c), rounded to Out.
template <class Out>
void store_tile(const BFloat16Panel& p, const float* sums, int64_t rows, int64_t columns, Out* c) {
  for (int64_t i = 0; i < rows; ++i, sums += tile_columns, c += p.ldc)
    for (int64_t j = 0; j < columns; j += lanes) {
      const auto bytes = static_cast<std::size_t>(least(columns - j, lanes)) * sizeof(Out);
      alignas(16) char some[lanes * sizeof(Out)] = {};
      Out* const numbers = reinterpret_cast<Out*>(some);
      float32x4_t value = vmulq_n_f32(vld1q_f32(sums + j), p.alpha);
      if (p.accumulate) {
        __builtin_memcpy(some, c + j, bytes);
        value = vaddq_f32(value, widen(numbers));
      }
      narrow(value, numbers);
      __builtin_memcpy(c + j, some, bytes);
    }
}

using Tile = void (*)(const BFloat16Panel&, const char*, const uint32_t*, int64_t, float*);

template <class Out>
void multiply(const BFloat16Panel& p) {
  static constexpr Tile tiles[] = {multiply_tile<1>, multiply_tile<2>, multiply_tile<3>,
                                   multiply_tile<4>, multiply_tile<5>, multiply_tile<6>};
  const int64_t b_pair = (p.n + tile_columns - 1) / tile_columns * tile_columns;
  alignas(16) float sums[tile_rows * tile_columns];
  for (int64_t column = 0; column < p.n; column += tile_columns)
    for (int64_t row = 0; row < p.m; row += tile_rows) {
      const int64_t rows = least(p.m - row, tile_rows);
      tiles[rows - 1](p, static_cast<const char*>(p.a) + row * p.a_row, p.b + column, b_pair, sums);
      store_tile(p, sums, rows, least(p.n - column, tile_columns),
                 static_cast<Out*>(p.c) + row * p.ldc + column);
    }
}

}  // namespace

const BFloat16Kernels* bfloat16_kernels_arm() {
  static constexpr BFloat16Kernels kernels{pack, multiply<float>, multiply<BFloat16>};
  return &kernels;
}

}  // namespace pleat::ops
#else
namespace pleat::ops {

const BFloat16Kernels* bfloat16_kernels_arm() { return nullptr; }

}  // namespace pleat::ops
#endif
