// Private header: not installed.
#pragma once

#include <arm_neon.h>

#include "pleat/ops/quantized/u8s8_loops.h"

/// For files that are compiled with dotprod, or with i8mm.

namespace pleat::ops {
namespace {

struct Arm : CompilersVectors {
  static constexpr int bytes = 16;
  static constexpr int strips = 1;

#if defined(__ARM_FEATURE_MATMUL_INT8)
  static constexpr int sums = 20;  ///< registers of a tile
  template <int>
  using Operand = int32x4_t;
  template <int size>
  [[gnu::always_inline]] static int32x4_t weights(const Vector<int8_t, size>& b) {
    return reinterpret_cast<int32x4_t>(b);
  }
  template <int size>
  [[gnu::always_inline]] static int32x4_t activations(const Vector<int32_t, size>& a) {
    return reinterpret_cast<int32x4_t>(a);
  }
  template <int size>
  [[gnu::always_inline]] static Vector<int32_t, size> dot(const Vector<int32_t, size>& sum, int32x4_t a,
                                                          int32x4_t b) {
    return reinterpret_cast<Vector<int32_t, size>>(
        vusdotq_s32(reinterpret_cast<int32x4_t>(sum), vreinterpretq_u8_s32(a), vreinterpretq_s8_s32(b)));
  }
#else
  static constexpr int sums = 16;
  /// Of int8 alone: sums of (a - 128) b, to which 128 b is added.
  template <int>
  struct Operand {
    int8x16_t bytes;
    int32x4_t rest;
  };
  template <int size>
  [[gnu::always_inline]] static Operand<size> weights(const Vector<int8_t, size>& b) {
    const auto bytes = reinterpret_cast<int8x16_t>(b);
    return {bytes, vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), bytes, vdupq_n_s8(64)), 1)};
  }
  template <int size>
  [[gnu::always_inline]] static Operand<size> activations(const Vector<int32_t, size>& a) {
    return {veorq_s8(reinterpret_cast<int8x16_t>(a), vdupq_n_s8(-128)), vdupq_n_s32(0)};
  }
  template <int size>
  [[gnu::always_inline]] static Vector<int32_t, size> dot(const Vector<int32_t, size>& sum,
                                                          const Operand<size>& a, const Operand<size>& b) {
    return reinterpret_cast<Vector<int32_t, size>>(
        vdotq_s32(vaddq_s32(reinterpret_cast<int32x4_t>(sum), b.rest), a.bytes, b.bytes));
  }
#endif
};

}  // namespace
}  // namespace pleat::ops
