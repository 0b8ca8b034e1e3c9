// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/core/tensor/half.h"

/// What the product of bfloat16 matrices is made of: pairs of neighbours along k, which the processor
/// multiplies and adds up to a float in one instruction.

namespace pleat::ops {

/// Columns of the right-hand operand that are computed together.
inline constexpr int64_t pair_columns = 64;

/// x[size, k], or x[k, size], to pairs[d][i] = (x[i, 2 d], x[i, 2 d + 1]) for i < width; 0 for i >= size and
/// for the missing neighbour where k is odd.
struct BFloat16Packing {
  const BFloat16* x;
  int64_t leading;
  bool rows_of_k;  ///< x is [size, k]
  int64_t size;
  int64_t k;
  uint32_t* pairs;
  int64_t width;      ///< a multiple of 16
  int64_t ahead = 0;  ///< elements from x[k, size] to what will be packed next, which may be fetched
};

/// c[m, n] = alpha sum over pairs of a[i, d] b[d, j] (+ c), n <= pair_columns. The pairs of a lie anywhere;
/// b is packed to a width of n, rounded up to 16.
struct BFloat16Panel {
  int64_t m, n, pairs;
  const void* a;
  int64_t a_row;   ///< from row to row of a, in bytes
  int64_t a_pair;  ///< from pair to pair
  const uint32_t* b;
  void* c;  ///< float or BFloat16
  int64_t ldc;
  bool accumulate;
  float alpha;
};

struct BFloat16Kernels {
  void (*pack)(const BFloat16Packing&);
  void (*multiply_to_float)(const BFloat16Panel&);
  void (*multiply_to_bfloat16)(const BFloat16Panel&);
};

/// Those with the instructions of AVX512_BF16 and of bf16 of 64-bit Arm, which the caller has found the
/// processor to have; null where the compiler knows none.
const BFloat16Kernels* bfloat16_kernels_avx512();
const BFloat16Kernels* bfloat16_kernels_arm();

}  // namespace pleat::ops
