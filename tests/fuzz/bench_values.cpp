// Values of pleat-bench's options. The first byte says which.
#include <string>

#include "pleat/bench/options.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  fuzz::accepts([&] {
    if (data[0] % 2 == 0) return fuzz::require(bench::parse_count("--batch", text) >= 1, "count: is below 1");
    for (const int64_t side : bench::parse_sizes("--size", text))
      fuzz::require(side >= 1, "sizes: one is below 1");
  });
  return 0;
}
