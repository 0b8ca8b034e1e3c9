// Convolutions as strings, as pleat-bench conv --shape takes them. What a problem calls itself is a string
// for the same problem.
#include "pleat/bench/conv_shape.h"

#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  std::string canonical;
  if (!fuzz::accepts([&] { canonical = bench::parse_conv_shape(text).describe(); })) return 0;
  std::string again;
  const bool accepted = fuzz::accepts([&] { again = bench::parse_conv_shape(canonical).describe(); });
  fuzz::require(accepted && again == canonical, "shape: its description is another shape, or none");
  return 0;
}
