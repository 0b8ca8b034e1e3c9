#include "pleat/core/tensor/convert.h"

#include <algorithm>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "pleat/core/base/checked_math.h"
#include "pleat/core/tensor/copy_bytes.h"
#include "pleat/core/tensor/transpose.h"

namespace pleat {
namespace {

template <class To, class From>
void convert_dense(To* out, const From* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
}

#if defined(__F16C__)
// Compilers (GCC up to 13) know the processor's conversion of one float16, but make no vector instructions of
// a loop over it. Ends of rows take the same instruction, so that NaNs keep the same bits everywhere.
void convert_dense(float* out, const Half* in, int64_t n) {
  const auto eight = [&](int64_t i) __attribute__((always_inline)) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  };
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int64_t j = 0; j < 32; j += 8) eight(i + j);
  for (; i + 8 <= n; i += 8) eight(i);
  for (; i < n; ++i) out[i] = _cvtsh_ss(in[i].bits);
}
void convert_dense(Half* out, const float* in, int64_t n) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT;
  const auto eight = [&](int64_t i) __attribute__((always_inline)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), nearest));
  };
  int64_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int64_t j = 0; j < 32; j += 8) eight(i + j);
  for (; i + 8 <= n; i += 8) eight(i);
  for (; i < n; ++i)
    out[i].bits = static_cast<uint16_t>(_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(in[i]), nearest)));
}
#endif

template <class To, class From>
void convert_row(To* out, int64_t to_step, const From* in, int64_t from_step, int64_t n) {
  if (to_step == 1 && from_step == 1)
    convert_dense(out, in, n);
  else
    for (int64_t i = 0; i < n; ++i) out[i * to_step] = convert<To>(in[i * from_step]);
}

/// Rows of n times the same element, one behind the other. They are written in pieces of constant size, of
/// which the next row overwrites what is too much: rows may be short.
template <class To, class From>
void repeat_each(To* out, const From* in, int64_t from_row, int64_t n, int64_t rows) {
  constexpr int64_t piece = 16;
  const int64_t pieces = ceil_div(n, piece);
  int64_t r = 0;
  for (; r * n + pieces * piece <= rows * n; ++r) {
    const To value = convert<To>(in[r * from_row]);
    for (int64_t i = 0; i < pieces; ++i) std::fill_n(out + r * n + i * piece, piece, value);
  }
  for (; r < rows; ++r) std::fill_n(out + r * n, n, convert<To>(in[r * from_row]));
}

template <class To, class From>
void convert_run(std::byte* to, Steps to_step, const std::byte* from, Steps from_step, int64_t n,
                 int64_t rows) {
  To* out = reinterpret_cast<To*>(to);
  const From* in = reinterpret_cast<const From*>(from);
  // Rows of the one side are columns of the other.
  const bool turned_from = rows > 1 && from_step.row == 1 && from_step.element > 1;
  const bool turned_to = rows > 1 && to_step.row == 1 && to_step.element > 1;
  if constexpr (std::is_same_v<To, From>) {
    if (turned_from && to_step.element == 1)
      return transpose_matrix(out, to_step.row, in, from_step.element, n, rows);
    if (turned_to && from_step.element == 1)
      return transpose_matrix(out, to_step.element, in, from_step.row, rows, n);
  }
  if (turned_from || turned_to) {
    std::swap(to_step.element, to_step.row);
    std::swap(from_step.element, from_step.row);
    std::swap(n, rows);
  }
  if (from_step.element == 0 && to_step.element == 1 && (rows == 1 || to_step.row == n))
    return repeat_each(out, in, from_step.row, n, rows);
  if (to_step.element == 1 && from_step.element == 1) {
    if (to_step.row == n && from_step.row == n) {
      n *= rows;
      rows = 1;
    }
    if constexpr (std::is_same_v<To, From>) {
      for (int64_t r = 0; r < rows; ++r)
        detail::copy_bytes(reinterpret_cast<std::byte*>(out + r * to_step.row),
                           reinterpret_cast<const std::byte*>(in + r * from_step.row),
                           static_cast<std::size_t>(n) * sizeof(To));
      return;
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    convert_row(out + r * to_step.row, to_step.element, in + r * from_step.row, from_step.element, n);
}

/// The same by the two loops of float: half types go through float anyway, and so there are fewer loops.
template <class To, class From>
void convert_run_by_float(std::byte* to, Steps to_step, const std::byte* from, Steps from_step, int64_t n,
                          int64_t rows) {
  constexpr int64_t block = 512;
  alignas(64) float buffer[block];
  for (int64_t r = 0; r < rows; ++r) {
    To* out = reinterpret_cast<To*>(to) + r * to_step.row;
    const From* in = reinterpret_cast<const From*>(from) + r * from_step.row;
    for (int64_t first = 0; first < n; first += block) {
      const int64_t count = std::min(block, n - first);
      convert_row(buffer, 1, in + first * from_step.element, from_step.element, count);
      convert_row(out + first * to_step.element, to_step.element, buffer, 1, count);
    }
  }
}

template <class To, class From>
constexpr ConvertRun run_for() {
  constexpr bool has_half = is_half(dtype_of<To>()) || is_half(dtype_of<From>());
  constexpr bool has_float = std::is_same_v<To, float> || std::is_same_v<From, float>;
  if constexpr (has_half && !has_float && !std::is_same_v<To, From>)
    return convert_run_by_float<To, From>;
  else
    return convert_run<To, From>;
}

}  // namespace

ConvertRun find_convert_run(DType to, DType from) {
  if (from == boolean && to != boolean) from = uint8;  // the same 0 and 1, but loops of vector instructions
  return dispatch(to, [&]<class To>(Type<To>) {
    return dispatch(from, [&]<class From>(Type<From>) { return run_for<To, From>(); });
  });
}

}  // namespace pleat
