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
#endif

}  // namespace

template <class T>
MultiplyAdds multiply_adds() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", run_avx512<T>};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"AVX2", run_avx2<T>};
#endif
  return {"baseline", run<T, 16, 12>};
}

template MultiplyAdds multiply_adds<float>();
template MultiplyAdds multiply_adds<double>();

}  // namespace pleat::bench
