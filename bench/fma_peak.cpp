#include "pleat/bench/fma_peak.h"

#include "pleat/core/base/simd.h"

namespace pleat::bench {
namespace {

/// `chains` sums that do not wait for each other hide the latency of a multiply-add. The values tend to 1, so
/// that none is ever denormal. Inlined into functions for wider instructions than the build's.
template <class T, int bytes, int chains>
[[gnu::always_inline]] inline double run(int64_t rounds) {
  using V = simd::Vector<T, bytes>;
  V sums[chains];
#pragma GCC unroll 32
  for (int i = 0; i < chains; ++i) sums[i] = V{} + static_cast<T>(i);
  V factor = V{} + static_cast<T>(0.75), addend = V{} + static_cast<T>(0.25);
  // The compiler may not work out what comes out.
  asm volatile("" : "+m"(factor), "+m"(addend));
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 32
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * factor + addend;
  V total = sums[0];
#pragma GCC unroll 32
  for (int i = 1; i < chains; ++i) total += sums[i];
  asm volatile("" : : "m"(total));
  return 2.0 * static_cast<double>(rounds) * chains * (bytes / static_cast<double>(sizeof(T)));
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx512f"), gnu::noinline]] double run_avx512(int64_t rounds) {
  return run<T, 64, 24>(rounds);
}
template <class T>
[[gnu::target("avx2,fma"), gnu::noinline]] double run_avx2(int64_t rounds) {
  return run<T, 32, 12>(rounds);
}

enum class Instructions : unsigned char { baseline, avx2, avx512 };
Instructions instructions() {
  static const Instructions found = __builtin_cpu_supports("avx512f") ? Instructions::avx512
                                    : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                        ? Instructions::avx2
                                        : Instructions::baseline;
  return found;
}
#endif

}  // namespace

template <class T>
double multiply_adds(int64_t rounds) {
#if defined(__x86_64__)
  if (instructions() == Instructions::avx512) return run_avx512<T>(rounds);
  if (instructions() == Instructions::avx2) return run_avx2<T>(rounds);
#endif
  return run<T, 16, 12>(rounds);
}

template double multiply_adds<float>(int64_t);
template double multiply_adds<double>(int64_t);

const char* multiply_add_instructions() {
#if defined(__x86_64__)
  if (instructions() == Instructions::avx512) return "AVX-512";
  if (instructions() == Instructions::avx2) return "AVX2";
#endif
  return "baseline";
}

}  // namespace pleat::bench
