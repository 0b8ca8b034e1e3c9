#include "pleat/bench/ask/questions.h"
#include "pleat/core/random/random.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::bench::ask;
using pleat::test::relative_error;

TEST_CASE("All ways to convolve patches with one filter bank give the same", "[ask]") {
  manual_seed(9);
  const Tensor x = randn({2, 5, 3, 4, 6}, {.dtype = float64}),
               filters = randn({7, 3, 3, 3}, {.dtype = float64});
  const Tensor wanted = as_batch(x, filters, "reference");
  CHECK(wanted.shape() == Shape{2, 5, 7, 4, 6});
  CHECK(relative_error(as_batch(x, filters), wanted) < 1e-14);
  CHECK(relative_error(as_frames(x, filters), wanted) < 1e-14);
  CHECK(relative_error(by_unfold(x, filters), wanted) < 1e-14);
  CHECK(relative_error(by_loop(x, filters), wanted) < 1e-14);
  CHECK(relative_error(as_groups(x, filters), wanted) < 1e-14);
}
