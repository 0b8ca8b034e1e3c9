#include "pleat/bench/relative_error.h"

#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("an error is relative to what is right", "[bench]") {
  const Tensor right = tensor({3.0, 4.0});
  CHECK(bench::relative_error(tensor({3.0, 4.0}), right) == 0);
  CHECK(bench::relative_error(tensor({3.0, 4.5}), right) == Approx(0.1));
  CHECK(bench::relative_error(tensor({0.1, 0.0}), tensor({0.0, 0.0})) == Approx(0.1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isinf(bench::relative_error(tensor({nan, 4.0}), right)));
  CHECK_THROWS_AS(bench::relative_error(tensor({1.0}), right), ShapeError);
}
