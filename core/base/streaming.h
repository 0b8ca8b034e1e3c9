// Private header: not installed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#define PLEAT_STREAMS 1
#else
#define PLEAT_STREAMS 0
#endif

/// Writing past the caches. An ordinary store first reads the line that it changes: a third of the traffic of
/// y = x + z, half of that of a fill. Where a result is so large that it has left the caches before
/// it is read, kernels write a piece of it to a buffer in the first-level cache and copy that so.

namespace pleat {

/// Whether a result of so many bytes is written past the caches. Smaller ones may still lie in the
/// last one when they are read. Other processors than x86-64 find whole lines by themselves.
constexpr bool is_streamed(int64_t bytes) { return PLEAT_STREAMS == 1 && bytes >= int64_t{16} << 20; }

/// Bytes of a cache line, which is written as a whole.
inline constexpr int64_t cache_line = 64;

/// Nothing to do beside each line.
struct Nothing {
  void operator()(int64_t) const {}
};

/// Copies bytes, whole lines of `to` past the caches, and calls `beside` with the distance of each, where
/// what is read next can be fetched meanwhile. Other threads see them after `end_streaming`.
template <class Beside = Nothing>
void stream_bytes(void* to, const void* from, int64_t bytes, [[maybe_unused]] const Beside& beside = {}) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
#if PLEAT_STREAMS
  const auto above = static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(out) % cache_line);
  const int64_t head = std::min(bytes, (cache_line - above) % cache_line);
  std::memcpy(out, in, static_cast<std::size_t>(head));
  out += head, in += head, bytes -= head;
  for (; bytes >= cache_line; out += cache_line, in += cache_line, bytes -= cache_line) {
    beside(out - static_cast<std::byte*>(to));
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out), _mm512_loadu_si512(in));
#elif defined(__AVX__)
    for (int64_t i = 0; i < cache_line; i += 32)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
#else
    for (int64_t i = 0; i < cache_line; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
#endif
  }
#endif
  std::memcpy(out, in, static_cast<std::size_t>(bytes));
}

/// Elements computed at a time of a result that is written past the caches: few, so that computing and
/// writing overlap.
inline constexpr int64_t streamed_elements = 256;

/// How many of the n elements of `bytes` each from `to` on are computed next: so many that the next ones
/// begin a cache line, and each line is written at once.
inline int64_t streamed_count(const void* to, int64_t n, int64_t bytes) {
  const auto above = static_cast<int64_t>(reinterpret_cast<std::uintptr_t>(to) % cache_line);
  return std::min(n, streamed_elements - above / bytes);
}

/// Writes `n` elements by write(T* to, first, count): to their place, or past the caches, and then fetches
/// what comes next of the arrays `from`, of n elements each.
template <class T, class Write, class... From>
void write_run(T* to, int64_t n, bool streamed, const Write& write, const From*... from) {
  if (!streamed) return write(to, int64_t{0}, n);
  alignas(64) T buffer[streamed_elements];
  for (int64_t first = 0, count = 0; first < n; first += count) {
    count = streamed_count(to + first, n - first, sizeof(T));
    write(buffer, first, count);
    stream_bytes(
        to + first, buffer,
        count * static_cast<int64_t>(sizeof(T)), [&](int64_t at) __attribute__((always_inline)) {
          const int64_t next = first + 2 * streamed_elements + at / static_cast<int64_t>(sizeof(T));
          (__builtin_prefetch(from + next), ...);
        });
  }
}

/// After the last of some stream_bytes of a thread.
inline void end_streaming() {
#if PLEAT_STREAMS
  _mm_sfence();
#endif
}

}  // namespace pleat
