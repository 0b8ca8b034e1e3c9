#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::relative_error;

TEST_CASE("Convolutions by hand are convolutions, and leave results in different layouts", "[ask]") {
  manual_seed(11);
  const Tensor x = randn({2, 3, 6, 5}, {.dtype = float64}), w = randn({4, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = conv2d(x, w, {.padding = 1});
  const Tensor columns = conv_by_product(x, w, 1, false), windows = conv_by_product(x, w, 1, true);
  CHECK(relative_error(columns, wanted) < 1e-14);
  CHECK(relative_error(windows, wanted) < 1e-14);
  CHECK(columns.memory_format() == MemoryFormat::contiguous);
  CHECK(windows.memory_format() == MemoryFormat::channels_last);
}
