// Values of pleat-bench's options. The first byte says which.
#include <string>

#include "pleat/bench/options.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  fuzz::accepts([&] {
    switch (data[0] % 4) {
      case 0:
        return fuzz::require(name(bench::parse_dtype(text)) == text, "dtype: has another name");
      case 1:
        return fuzz::require(name(bench::parse_format(text)) == text, "format: has another name");
      case 2:
        return fuzz::require(bench::text_of_precision(bench::parse_precision(text)) == text,
                             "precision: has another name");
      default:
        for (const int64_t side : bench::parse_sizes("--size", text))
          fuzz::require(side >= 1, "sizes: one is below 1");
    }
  });
  return 0;
}
