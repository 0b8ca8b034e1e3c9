#include "pleat/ops/elementwise/exponential.h"

#include <limits>

#include "pleat/tests/catch.h"

using pleat::ops::exponential;

TEST_CASE("the float exponential is right to the last place") {
  double worst = 0;
  for (uint32_t i = 0; i < 2'000'000; ++i) {
    const float x = -87.0F + static_cast<float>(i) * (175.7F / 2'000'000);
    const double right = std::exp(static_cast<double>(x));
    const auto rounded = static_cast<float>(right);
    const double place =
        static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) -
        static_cast<double>(rounded);
    const double error = std::abs(static_cast<double>(exponential(x)) - right) / place;
    worst = error <= worst ? worst : error;
  }
  CHECK(worst < 1.25);
}

TEST_CASE("the float exponential at the ends of its range") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(exponential(0.0F) == 1);
  CHECK(exponential(-infinity) == 0);
  CHECK(exponential(-1e30F) == 0);
  CHECK(exponential(-104.0F) == 0);
  CHECK(exponential(-100.0F) == std::exp(-100.0F));
  CHECK(exponential(infinity) == infinity);
  CHECK(exponential(88.8F) == infinity);
  CHECK(std::isfinite(exponential(88.7F)));
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}
