// Private header: not installed.
#pragma once

#include <cstring>

#include "pleat/core/base/simd.h"
#include "pleat/ops/quantized/u8s8_kernels.h"

/// The loops of the kernels over an instruction set, `Isa`. In an unnamed namespace, as they are compiled for
/// several processors. Files that include this are compiled without contraction to fused multiply-adds, so
/// that all round alike.

namespace pleat::ops {
namespace {

using simd::for_constants;
using simd::load;
using simd::store;
using simd::Vector;

constexpr int64_t tile_columns = 64;

/// The lowest bytes of 1.5 * 2^23 + x are x, rounded to the nearest whole number: for x of 0 ... 255.
constexpr float rounder = 12582912;

template <class Isa, int size, class V>
[[gnu::always_inline]] inline void store_rounded(const V& x, uint8_t* to, int64_t count) {
  using Ints = Vector<int32_t, size * 4>;
  Isa::template store_some<size>(to, Isa::template low_bytes<size>(reinterpret_cast<Ints>(x + rounder)),
                                 count);
}

/// What the compiler's vectors are enough for.
struct CompilersVectors {
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

enum class Addend { none, of_float, of_uint8 };

/// Rows of sums, tile_columns apart, to y.
template <class Isa, Addend addend, bool to_uint8>
void finish_rows(const U8S8Finish& given, const int32_t* sums, int64_t rows, int64_t columns,
                 int64_t first_row, int64_t first_column) {
  constexpr int size = Isa::bytes / 4;
  using Floats = Vector<float, Isa::bytes>;
  const U8S8Finish f = given;  // which y does not alias
  for (int64_t j = 0; j < columns; j += size) {
    const int64_t column = first_column + j, count = columns - j;
    const Floats scale = load<Isa::bytes>(f.scale + column), shift = load<Isa::bytes>(f.shift + column);
    int64_t place = first_row * f.addend_row + column, to = first_row * f.y_row + column;
    for (int64_t i = 0; i < rows; ++i, place += f.addend_row, to += f.y_row) {
      Floats y =
          __builtin_convertvector(load<Isa::bytes>(sums + i * tile_columns + j), Floats) * scale + shift;
      if constexpr (addend == Addend::of_float)
        y += Isa::template load_some<size>(f.float_addend + place, count) * f.addend_scale;
      else if constexpr (addend == Addend::of_uint8)
        y += Isa::template to_floats<size>(Isa::template load_some<size>(f.uint8_addend + place, count)) *
             f.addend_scale;
      y = Isa::limited(y, f.low, f.high);
      if constexpr (to_uint8)
        store_rounded<Isa, size>(y, f.uint8_y + to, count);
      else
        Isa::template store_some<size>(f.float_y + to, y, count);
    }
  }
}
template <class Isa>
void finish_rows(const U8S8Finish& f, const int32_t* sums, int64_t rows, int64_t columns, int64_t first_row,
                 int64_t first_column) {
  static constexpr decltype(&finish_rows<Isa, Addend::none, true>) ways[3][2] = {
      {finish_rows<Isa, Addend::none, false>, finish_rows<Isa, Addend::none, true>},
      {finish_rows<Isa, Addend::of_float, false>, finish_rows<Isa, Addend::of_float, true>},
      {finish_rows<Isa, Addend::of_uint8, false>, finish_rows<Isa, Addend::of_uint8, true>}};
  const int addend = f.float_addend != nullptr ? 1 : f.uint8_addend != nullptr ? 2 : 0;
  ways[addend][f.uint8_y != nullptr](f, sums, rows, columns, first_row, first_column);
}

/// Sums of `rows` rows of a and `strips` strips of b.
template <class Isa, int strips, int rows>
void multiply_tile(const U8S8Product& p, const uint8_t* const* a, const int8_t* b, const int32_t* start,
                   int32_t* sums) {
  constexpr int size = Isa::bytes / 4, per_strip = strip_columns / size, vectors = strips * per_strip;
  constexpr int64_t group_bytes = 4 * strip_columns;
  const int64_t strip_bytes = p.segment_count * p.segment_groups * group_bytes;
  Vector<int32_t, Isa::bytes> total[rows][vectors];
  for_constants<vectors>([&](auto v) {
    for_constants<rows>([&](auto i) { total[i][v] = load<Isa::bytes>(start + v * size); });
  });
  for (int64_t s = 0; s < p.segment_count; ++s) {
    const uint8_t* row[rows];
    for_constants<rows>([&](auto i) { row[i] = a[i] + p.segments[s]; });
    for (int64_t group = 0; group < p.segment_groups; ++group, b += group_bytes) {
      typename Isa::template Operand<Isa::bytes> lane[vectors];
      for_constants<vectors>([&](auto v) {
        const int8_t* const from = b + v / per_strip * strip_bytes + v % per_strip * Isa::bytes;
        lane[v] = Isa::template weights<Isa::bytes>(load<Isa::bytes>(from));
      });
      for_constants<rows>([&](auto i) {
        int32_t four;
        std::memcpy(&four, row[i] + 4 * group, sizeof(four));
        const auto x = Isa::template activations<Isa::bytes>(Vector<int32_t, Isa::bytes>{} + four);
        for_constants<vectors>(
            [&](auto v) { total[i][v] = Isa::template dot<Isa::bytes>(total[i][v], x, lane[v]); });
      });
    }
  }
  for_constants<rows>([&](auto i) {
    for_constants<vectors>(
        [&](auto v) { store<Isa::bytes>(sums + i * tile_columns + v * size, total[i][v]); });
  });
}

/// So many that their sums stay in registers; a strip of one vector has enough with half of them.
template <class Isa, int strips>
constexpr int most_rows = Isa::bytes == 64 && strips == 1 ? Isa::sums / 2
                                                          : Isa::sums* Isa::bytes / (64 * strips);

using Tile = void (*)(const U8S8Product&, const uint8_t* const*, const int8_t*, const int32_t*, int32_t*);

/// The tile of `count` rows, which are `rows` at most.
template <class Isa, int strips, int rows = most_rows<Isa, strips>>
Tile find_tile(int64_t count) {
  if constexpr (rows > 1)
    return count == rows ? multiply_tile<Isa, strips, rows> : find_tile<Isa, strips, rows - 1>(count);
  else
    return multiply_tile<Isa, strips, 1>;
}

/// All rows and `columns` columns from the first of `strips` strips, in tiles of about equal size.
template <class Isa, int strips>
void multiply_strips(const U8S8Product& p, int64_t first, int64_t columns) {
  constexpr int most = most_rows<Isa, strips>;
  const int8_t* const b = p.b + first * p.segment_count * p.segment_groups * 4;
  const int64_t tiles = (p.rows + most - 1) / most;
  alignas(64) int32_t sums[most * tile_columns];
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = p.rows * t / tiles, rows = p.rows * (t + 1) / tiles - row;
    find_tile<Isa, strips>(rows)(p, p.a + row, b, p.finish.start + first, sums);
    finish_rows<Isa>(p.finish, sums, rows, columns, row, first);
  }
}

template <class Isa>
void multiply(const U8S8Product& p) {
  constexpr int64_t together = Isa::strips * strip_columns;
  for (int64_t first = 0; first < p.columns; first += together) {
    const int64_t columns = p.columns - first < together ? p.columns - first : together;
    const int64_t strips = (columns + strip_columns - 1) / strip_columns;
    for_constants<Isa::strips>([&](auto i) {
      if (strips == i + 1) multiply_strips<Isa, i + 1>(p, first, columns);
    });
  }
}

/// lower = a[0], b[0], a[1] ... of the lower halves of each 16 bytes, upper = of their upper halves; elements
/// are of `unit` bytes.
template <int bytes, int unit, class V>
[[gnu::always_inline]] inline void interleave_lanes(const V& a, const V& b, V& lower, V& upper) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr auto place = [](std::size_t at, std::size_t half) {
      const std::size_t pair = at % 16 / (2 * unit), second = at / unit % 2;
      return at / 16 * 16 + half * 8 + pair * unit + at % unit + second * bytes;
    };
    lower = __builtin_shufflevector(a, b, place(i, 0)...);
    upper = __builtin_shufflevector(a, b, place(i, 1)...);
  }
  (std::make_index_sequence<bytes>());
}

/// lower = a[0], b[0], a[1] ... of the lower halves, upper = of the upper halves; elements are of `unit`
/// bytes.
template <int unit, class V>
[[gnu::always_inline]] inline void interleave_all(const V& a, const V& b, V& lower, V& upper) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr std::size_t n = sizeof...(i), words = unit / 4;
    constexpr auto place = [](std::size_t at, std::size_t half) {
      return half * n / 2 + at / (2 * words) * words + at % words + at / words % 2 * n;
    };
    lower = __builtin_shufflevector(a, b, place(i, 0)...);
    upper = __builtin_shufflevector(a, b, place(i, 1)...);
  }
  (std::make_index_sequence<sizeof(V) / 4>());
}

/// Sums of one window of `block` channels from `channel` on, in their order.
template <class Isa, int block>
[[gnu::always_inline]] inline void sum_window(const U8S8Depthwise& p, const uint8_t* a, const int8_t* b,
                                              const Vector<int32_t, block>* start, int32_t* sums) {
  using Bytes = Vector<uint8_t, block>;
  using Ints = Vector<int32_t, block>;
  Ints total[4];
  for_constants<4>([&](auto quarter) { total[quarter] = start[quarter]; });
  for (int64_t t = 0; t < p.tap_count; t += 4, b += 4 * block) {
    Bytes tap[4] = {}, pairs[4], fours[4];
    for_constants<4>([&](auto i) {
      if (t + i < p.tap_count) tap[i] = load<block>(a + p.taps[t + i]);
    });
    interleave_lanes<block, 1>(tap[0], tap[1], pairs[0], pairs[1]);
    interleave_lanes<block, 1>(tap[2], tap[3], pairs[2], pairs[3]);
    interleave_lanes<block, 2>(pairs[0], pairs[2], fours[0], fours[1]);
    interleave_lanes<block, 2>(pairs[1], pairs[3], fours[2], fours[3]);
    for_constants<4>([&](auto quarter) {
      total[quarter] = Isa::template dot<block>(
          total[quarter], Isa::template activations<block>(reinterpret_cast<Ints>(fours[quarter])),
          Isa::template weights<block>(load<block>(b + quarter * block)));
    });
  }
  // From each quarter's lanes to lanes of each four quarters.
  constexpr int rounds = block > 16 ? 2 : 0;
  Ints round[4];
  for_constants<rounds>([&](auto) {
    for_constants<2>(
        [&](auto i) { interleave_all<16>(total[i], total[i + 2], round[2 * i], round[2 * i + 1]); });
    for_constants<4>([&](auto i) { total[i] = round[i]; });
  });
  for_constants<4>([&](auto i) { store<block>(sums + i * (block / 4), total[i]); });
}

template <class Isa, int block>
void depthwise_block_of(const U8S8Depthwise& p, const int8_t* b, int64_t channel) {
  constexpr int64_t together = 8;
  alignas(64) int32_t sums[together * tile_columns];
  int32_t ordered[block];
  for (int64_t i = 0; i < block; ++i) ordered[i] = p.finish.start[channel + interleaved_channel(i, block)];
  Vector<int32_t, block> start[4];
  for_constants<4>([&](auto i) { start[i] = load<block>(ordered + i * (block / 4)); });
  const int64_t channels = p.channels - channel < block ? p.channels - channel : block;
  for (int64_t first = 0; first < p.rows; first += together) {
    const int64_t rows = p.rows - first < together ? p.rows - first : together;
    for (int64_t i = 0; i < rows; ++i)
      sum_window<Isa, block>(p, p.a[first + i] + channel, b, start, sums + i * tile_columns);
    finish_rows<Isa>(p.finish, sums, rows, channels, first, channel);
  }
}

template <class Isa>
void depthwise(const U8S8Depthwise& p) {
  const int8_t* b = p.b;
  const int64_t rows_of_b = (p.tap_count + 3) / 4 * 4;
  for (int64_t channel = 0; channel < p.channels;) {
    const int64_t block = depthwise_block(p.channels - channel, Isa::bytes);
    if constexpr (Isa::bytes >= 64)
      if (block == 64) depthwise_block_of<Isa, 64>(p, b, channel);
    if constexpr (Isa::bytes >= 32)
      if (block == 32) depthwise_block_of<Isa, 32>(p, b, channel);
    if (block == 16) depthwise_block_of<Isa, 16>(p, b, channel);
    channel += block;
    b += rows_of_b * block;
  }
}

template <class Isa>
void quantize(const float* x, int64_t n, float scale, float shift, uint8_t* y) {
  constexpr int size = Isa::bytes / 4;
  for (int64_t i = 0; i < n; i += size)
    store_rounded<Isa, size>(
        Isa::limited(Isa::template load_some<size>(x + i, n - i) * scale + shift, 0, 255), y + i, n - i);
}

template <class Isa>
constexpr U8S8Kernels kernels_of{multiply<Isa>, depthwise<Isa>, quantize<Isa>, Isa::bytes};

}  // namespace
}  // namespace pleat::ops
