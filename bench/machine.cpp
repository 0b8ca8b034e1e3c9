// What the machine does at best, measured once for each device and number of threads: multiply-adds in
// registers or large matrix products, and copies. Tables hold times against it.
#include "pleat/bench/machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>

#include "pleat/core/base/instruction_set.h"
#include "pleat/core/base/simd.h"
#include "pleat/ops/tune/cache.h"
#include "pleat/pleat.h"
#include "pleat/profile/timer.h"

namespace pleat::bench {
namespace {

/// `chains` sums that do not wait for each other hide the latency of a multiply-add. The values tend to 1, so
/// that none is ever denormal. Inlined into functions for wider instructions than the build's.
template <class T, int bytes, int chains>
[[gnu::always_inline]] inline double run_multiply_adds(int64_t rounds) {
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
  return run_multiply_adds<T, 64, 24>(rounds);
}
template <class T>
[[gnu::target("avx2,fma"), gnu::noinline]] double run_avx2(int64_t rounds) {
  return run_multiply_adds<T, 32, 12>(rounds);
}
#endif

/// In the widest instructions that the CPU has; returns how many floating-point operations they were.
template <class T>
double (*multiply_adds())(int64_t rounds) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return run_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2<T>;
#endif
  return run_multiply_adds<T, 16, 12>;
}

constexpr int64_t mib = 1024 * 1024;

/// The best rate of several runs of `work`, each of which does `amount` [per second].
double best_rate(Device device, int runs, double amount, const std::function<void()>& work) {
  const benchmark::Timer timer({.device = device, .min_run_time = 1e-6, .min_blocks = runs});
  const std::vector<double> times = timer.measure(work).times;
  return amount / *std::min_element(times.begin(), times.end());
}

/// By processor time, all threads at work: arithmetic in registers shares nothing but the core with what else
/// the machine does, so that a busy machine shows the same peak. The median of several runs, since one whose
/// threads began at different times may have had cores for itself that are shared otherwise.
template <class T>
Ceiling fma_peak(const char* type) {
  constexpr int64_t pieces_each = 4, rounds = 50000;
#if defined(_WIN32)
  constexpr auto clock = CLOCK_MONOTONIC;  // that of a thread goes in steps of 16 ms
#else
  constexpr auto clock = CLOCK_THREAD_CPUTIME_ID;
#endif
  double (*const run_rounds)(int64_t) = multiply_adds<T>();
  const int threads = num_threads();
  const int64_t pieces = pieces_each * threads;
  std::vector<double> rates;
  for (int run = 0; run < 41; ++run) {
    std::vector<double> done(static_cast<std::size_t>(pieces)), seconds = done;
    parallel_chunks(pieces, [&](int64_t piece) {
      const auto i = static_cast<std::size_t>(piece);
      const double start = seconds_of(clock);
      done[i] = run_rounds(rounds);
      seconds[i] = seconds_of(clock) - start;
    });
    rates.push_back(threads * std::accumulate(done.begin(), done.end(), 0.0) /
                    std::accumulate(seconds.begin(), seconds.end(), 0.0));
  }
  return {fmt::format("FMA {}", type), 1e-9 * benchmark::quantile(rates, 0.5)};
}

/// Copies between two arrays of `bytes` each, `times` times in a run.
double copy_rate(int64_t bytes, int times, int runs) {
  const Tensor from = ones({bytes}, {.dtype = DType::uint8}), to = ones({bytes}, {.dtype = DType::uint8});
  const auto* source = from.data<uint8_t>();
  auto* target = to.data<uint8_t>();
  const int64_t pieces = 4 * num_threads();
  return 1e-9 * best_rate({}, runs, 2.0 * static_cast<double>(bytes) * times, [&] {
           parallel_chunks(pieces, [&](int64_t piece) {
             const int64_t first = bytes * piece / pieces, last = bytes * (piece + 1) / pieces;
             for (int i = 0; i < times; ++i)
               std::memcpy(target + first, source + first, static_cast<std::size_t>(last - first));
           });
         });
}

Ceilings measure_cpu() {
  Ceilings result{.device = {}, .threads = num_threads()};
  result.peaks = {fma_peak<float>("float32"), fma_peak<double>("float64")};
  const int64_t cache = benchmark::last_cache_bytes();
  const int64_t large = std::clamp(4 * cache, 64 * mib, 512 * mib);
  result.bandwidths.push_back({"copy", copy_rate(large, 1, 7)});
  if (cache > 0) {
    // Both arrays fill a half of the cache, and each thread copies its own piece again and again.
    const int64_t small = cache / 4;
    const int times = static_cast<int>(std::clamp<int64_t>(64 * mib / small, 2, 64));
    result.bandwidths.push_back({"last-level cache", copy_rate(small, times, 15)});
  }
  return result;
}

/// Products whose rate is the peak of a type on CUDA; `size` of square matrices.
struct Gemm {
  const char* name;
  DType dtype;
  Precision precision;
  int64_t size;
};
constexpr Gemm gemms[] = {{"GEMM float32", float32, Precision::highest, 8192},
                          {"GEMM TF32", float32, Precision::high, 8192},
                          {"GEMM float32 as bfloat16", float32, Precision::medium, 8192},
                          {"GEMM float16", float16, Precision::highest, 8192},
                          {"GEMM bfloat16", bfloat16, Precision::highest, 8192},
                          {"GEMM float64", float64, Precision::highest, 4096}};

Ceiling gemm_peak(const Gemm& gemm, Device device) {
  const PrecisionScope scope(gemm.precision);
  const Shape square{gemm.size, gemm.size};
  const Tensor a = randn(square, {.device = device}).to(gemm.dtype);
  const Tensor b = randn(square, {.device = device}).to(gemm.dtype);
  const double flops = 2 * std::pow(static_cast<double>(gemm.size), 3);
  const double rate = best_rate(device, 7, flops, [&] { (void)matmul(a, b); });
  return {gemm.name, 1e-9 * rate};
}

Ceilings measure_cuda(Device device) {
  Ceilings result{.device = device, .threads = num_threads()};
  for (const Gemm& gemm : gemms) result.peaks.push_back(gemm_peak(gemm, device));
  const int64_t bytes = std::clamp(cuda::memory_info(device).free / 8, 64 * mib, 1024 * mib) / 4 * 4;
  const Tensor from = ones({bytes / 4}, {.device = device}), to = ones({bytes / 4}, {.device = device});
  const double rate =
      best_rate(device, 15, 2.0 * static_cast<double>(bytes), [&] { ops::copy_into(to, from); });
  result.bandwidths.push_back({"copy", 1e-9 * rate});
  return result;
}

}  // namespace

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string describe_machine(Device device, int threads) {
  if (device.is_cpu()) {
    const int used = threads > 0 ? threads : num_threads();
    std::string level(instruction_set());
    if (level != cpu_instruction_set()) level += fmt::format(" where {} could be", cpu_instruction_set());
    return fmt::format("cpu: {}, {}, {} thread{}", ops::cpu_model(), level, used, used == 1 ? "" : "s");
  }
  const cuda::Versions v = cuda::versions();
  return fmt::format("{}: {}, CUDA {}, driver {}, cuBLAS {}, cuDNN {}", name(device),
                     cuda::properties(device).name, v.runtime, v.driver, v.cublas, v.cudnn);
}

std::optional<double> Ceilings::peak(DType dtype, Precision precision) const {
  std::string wanted;
  if (device.is_cpu() && is_floating(dtype)) wanted = dtype == float64 ? "FMA float64" : "FMA float32";
  if (dtype != float32) precision = Precision::highest;
  for (const Gemm& gemm : gemms)
    if (device.is_cuda() && gemm.dtype == dtype && gemm.precision == precision) wanted = gemm.name;
  for (const Ceiling& ceiling : peaks)
    if (ceiling.name == wanted) return ceiling.value;
  return {};
}

const Ceilings& ceilings(Device device) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, Ceilings> known;
  const std::scoped_lock lock(mutex);
  const std::pair key{name(device), num_threads()};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, device.is_cpu() ? measure_cpu() : measure_cuda(device)).first->second;
}

std::string ceilings_text(const Ceilings& ceilings) {
  std::string line = "measured ceilings: ";
  const auto add = [&](const std::vector<Ceiling>& list, const char* unit) {
    for (const Ceiling& one : list)
      line += fmt::format("{}{} {} {}", line.back() == ' ' ? "" : ", ", one.name,
                          benchmark::format_significant(one.value, 3), unit);
  };
  add(ceilings.peaks, "GFLOP/s");
  add(ceilings.bandwidths, "GB/s");
  return line;
}

}  // namespace pleat::bench
