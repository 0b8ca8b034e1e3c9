#include "pleat/ops/elementwise/dropout.h"

#include <cmath>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("dropout drops with probability p and scales the rest") {
  Generator generator(3);
  const Tensor y = dropout(ones({100, 1000}), 0.3, true, generator);
  int64_t kept = 0;
  for (const float v : y.to_vector()) {
    CHECK_FALSE((v != 0 && v != 1 / 0.7f));
    kept += v != 0 ? 1 : 0;
  }
  // Five standard deviations of a binomial distribution.
  CHECK(std::abs(static_cast<double>(kept) - 70000) < 5 * std::sqrt(100000 * 0.3 * 0.7));
}

TEST_CASE("dropout leaves all or nothing at the ends, and everything in evaluation") {
  const Tensor x = tensor({1.0, 2.0, std::numeric_limits<double>::infinity()});
  CHECK(array_equal(dropout(x, 0), x));
  CHECK(array_equal(dropout(x, 1), zeros({3})));
  CHECK(array_equal(dropout(x, 0.5, false), x));
  CHECK(array_equal(channel_dropout(ones({2, 3}), 1), zeros({2, 3})));
  CHECK(dropout(zeros({0, 3}), 0.5).shape() == Shape{0, 3});
}

TEST_CASE("dropout's mask depends on the generator alone") {
  const Tensor x = ones({4, 8, 50, 50});
  const auto draw = [&](const Tensor& input) {
    Generator generator(5);
    return dropout(input, 0.5, true, generator);
  };
  const int threads = num_threads();
  set_num_threads(1);
  const Tensor y = draw(x);
  set_num_threads(3);
  CHECK(array_equal(draw(x), y));
  set_num_threads(threads);
  const Tensor last = draw(x.to(MemoryFormat::channels_last));
  CHECK(last.memory_format() == MemoryFormat::channels_last);
  CHECK(array_equal(last, y));
  Generator generator(5);
  const Tensor first = dropout(x, 0.5, true, generator);
  CHECK(array_equal(first, y));
  CHECK_FALSE(array_equal(dropout(x, 0.5, true, generator), y));
}

TEST_CASE("channel_dropout drops whole channels") {
  Generator generator(1);
  const Tensor y = channel_dropout(ones({50, 20, 3, 2}), 0.25, true, generator);
  const Tensor means = sum(y, {2, 3}) / 6;
  int64_t kept = 0;
  for (const float mean : means.to_vector()) {
    CHECK_FALSE((mean != 0 && mean != Approx(1 / 0.75)));
    kept += mean != 0 ? 1 : 0;
  }
  CHECK(std::abs(static_cast<double>(kept) - 750) < 5 * std::sqrt(1000 * 0.25 * 0.75));
}

TEST_CASE("derivatives of dropout use the mask of the forward pass") {
  const Tensor w = ones({1000}).set_requires_grad();
  const Tensor y = dropout(w, 0.5);
  sum(y).backward();
  CHECK(array_equal(w.grad(), y));
}

TEST_CASE("dropout keeps half types and explains bad inputs") {
  CHECK(dropout(ones({4}, {.dtype = float16}), 0.5).dtype() == float16);
  CHECK(dropout(ones({4}, {.dtype = bfloat16}), 0.5).dtype() == bfloat16);
  CHECK_THROWS_AS(dropout(ones({2}), 1.5), ValueError);
  CHECK_THROWS_WITH(dropout(ones({2}), -0.1),
                    Contains("dropout: the probability must be in [0, 1], got -0.1"));
  CHECK_THROWS_AS(dropout(ones({2}), std::nan(""), false), ValueError);
  CHECK_THROWS_WITH(dropout(arange(3), 0.5), Contains("dropout: needs a floating type, got [3] int64"));
  CHECK_THROWS_WITH(channel_dropout(ones({2}), 0.5), Contains("channel_dropout: needs [N, C, ...], got [2]"));
}
