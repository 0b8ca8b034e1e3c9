// What the caching allocator is for: convolutions with few channels, with blocks from the cache and with
// fresh pages.
#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <pleat/pleat.h>

#include "pleat/examples/common/program.h"

using namespace pleat;

namespace {

/// Median milliseconds of 15 calls.
template <class F>
double median_ms(const F& f) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run() {
  set_num_threads(1);
  constexpr int64_t cache = int64_t{2} << 30;
  print("forward, one thread; ms: cached, fresh pages, ratio\n");
  for (const auto& [n, c, k, hw] :
       {std::array<int64_t, 4>{128, 3, 16, 32}, {128, 3, 64, 32}, {16, 3, 64, 112}, {128, 16, 16, 32}}) {
    const Tensor x = randn({n, c, hw, hw}).to(MemoryFormat::channels_last);
    const Tensor w = randn({k, c, 3, 3});
    const auto forward = [&] { conv2d(x, w, {.padding = 1}); };
    set_cache_limit(cache);
    forward();
    const double cached = median_ms(forward);
    set_cache_limit(0);
    const double fresh = median_ms(forward);
    print("n%ld c%ld k%ld hw%ld r3: %.2f  %.2f  %.2f\n", static_cast<long>(n), static_cast<long>(c),
          static_cast<long>(k), static_cast<long>(hw), cached, fresh, fresh / cached);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("fresh_pages", "Measures what fresh pages of memory cost a convolution.", argc, argv,
                     run);
}
