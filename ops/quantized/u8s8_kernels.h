// Private header: not installed.
#pragma once

#include <cstdint>

/// What products of uint8 activations and int8 weights are made of: four neighbours along k, which the
/// processor multiplies and adds up to an int32 in one instruction. All kernels give the same bits.

namespace pleat::ops {

/// Columns that lie together in packed weights: b[strip][k / 4][16 columns][4], 0 where k or the columns end.
inline constexpr int64_t strip_columns = 16;

/// What becomes of the int32 sums of a column: limits(sum * scale + shift + addend * addend_scale), rounded
/// to the nearest, ties to even, where y is uint8: then scale and shift are in units of y.
struct U8S8Finish {
  const int32_t* start;  ///< of each column: what sums start from
  const float *scale, *shift;
  float low, high;
  const float* float_addend = nullptr;  ///< of the first row and column, as y lies; null: none
  const uint8_t* uint8_addend = nullptr;
  float addend_scale = 1;
  int64_t addend_row;        ///< elements from row to row
  float* float_y = nullptr;  ///< one of the two
  uint8_t* uint8_y = nullptr;
  int64_t y_row;
};

/// Rows a[i] of segments: the bytes at a[i] + segments[s], of which groups of 4 are multiplied. The
/// per-column arrays may be read, and weights lie, up to a whole strip.
struct U8S8Product {
  int64_t rows, columns;
  const uint8_t* const* a;
  const int64_t* segments;
  int64_t segment_count, segment_groups;
  const int8_t* b;
  U8S8Finish finish;
};

/// Sums over taps t of a[i][taps[t] + c] b[c, t]: each channel for itself. Up to `widest_block` bytes are
/// read beyond the channels. b is [block of channels][taps / 4][channel, as interleaved_channel orders
/// them][4].
struct U8S8Depthwise {
  int64_t rows, channels;
  const uint8_t* const* a;
  const int64_t* taps;
  int64_t tap_count;
  const int8_t* b;
  U8S8Finish finish;
};

struct U8S8Kernels {
  void (*multiply)(const U8S8Product&);
  void (*depthwise)(const U8S8Depthwise&);
  /// round(x * scale + shift), 0 ... 255.
  void (*quantize)(const float* x, int64_t n, float scale, float shift, uint8_t* y);
  int64_t widest_block;
};

/// How many channels a kernel computes together where so many are left.
constexpr int64_t depthwise_block(int64_t channels, int64_t widest) {
  return channels > 32 && widest >= 64 ? 64 : channels > 16 && widest >= 32 ? 32 : 16;
}
/// The channel in place i of a block of `block`: bytes of four taps, interleaved in the lanes of 16 bytes.
constexpr int64_t interleaved_channel(int64_t i, int64_t block) {
  const int64_t lane_count = block / 16, quarter = i / (4 * lane_count);
  return i / 4 % lane_count * 16 + quarter * 4 + i % 4;
}

/// Of the instructions that the library is compiled for.
const U8S8Kernels& u8s8_kernels_portable();
/// With AVX512_VNNI, for processors that have it; null where the compiler knows none.
const U8S8Kernels* u8s8_kernels_avx512();
/// With i8mm of 64-bit Arm, and with its older dotprod; null where the compiler knows none.
const U8S8Kernels* u8s8_kernels_i8mm();
const U8S8Kernels* u8s8_kernels_dotprod();
/// The fastest that the processor has.
const U8S8Kernels& u8s8_kernels();

}  // namespace pleat::ops
