// Tables of convolutions, as pleat-bench conv --shapes reads them.
#include "pleat/bench/conv_shape.h"
#include "pleat/tests/fuzz/fuzz.h"

using namespace pleat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const fuzz::InputAsFile file(data, size);
  fuzz::accepts([&] {
    for (const bench::NamedProblem& named : bench::read_conv_shapes(file.path()))
      fuzz::require(!named.problem.describe().empty(), "shapes: a problem without a description");
  });
  return 0;
}
