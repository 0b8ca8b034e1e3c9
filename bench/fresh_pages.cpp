// What the caching allocator is for: convolutions with few channels, with blocks from the cache and with
// fresh pages.
#include <array>
#include <iostream>

#include <pleat/pleat.h>

#include "pleat/examples/common/program.h"

using namespace pleat;

int main(int argc, char** argv) {
  return run_program(
      "fresh_pages", "Measures what fresh pages of memory cost a convolution.", argc, argv, [] {
        set_num_threads(1);
        benchmark::Compare table;
        for (const auto& [n, c, k, hw] : {std::array<int64_t, 4>{128, 3, 16, 32},
                                          {128, 3, 64, 32},
                                          {16, 3, 64, 112},
                                          {128, 16, 16, 32}}) {
          const Tensor x = randn({n, c, hw, hw}).to(MemoryFormat::channels_last), w = randn({k, c, 3, 3});
          const std::string shape = "n" + std::to_string(n) + " c" + std::to_string(c) + " k" +
                                    std::to_string(k) + " hw" + std::to_string(hw) + " r3";
          // One after the other: what changes the limit empties the cache.
          for (const bool cached : {true, false}) {
            set_cache_limit(cached ? int64_t{2} << 30 : 0);
            table.add(benchmark::Timer{}.measure({.run = [&] { (void)conv2d(x, w, {.padding = 1}); },
                                                  .label = "forward",
                                                  .sub_label = shape,
                                                  .description = cached ? "cached" : "fresh pages"}));
          }
        }
        std::cout << table;
      });
}
