#include "pleat/ops/index/multinomial.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("multinomial draws places in proportion to their weights") {
  Generator generator(1);
  const Tensor weights = tensor({{1.0, 0.0, 3.0}, {0.0, 5.0, 0.0}});
  const int64_t draws = 20000;
  const auto places = multinomial(weights, draws, {.replacement = true}, generator).to_vector<int64_t>();
  REQUIRE(places.size() == 2 * static_cast<std::size_t>(draws));
  std::vector<double> counts(3);
  for (std::size_t i = 0; i < static_cast<std::size_t>(draws); ++i)
    ++counts[static_cast<std::size_t>(places[i])];
  CHECK(counts[1] == 0);
  // Four standard deviations of a binomial.
  CHECK(std::abs(counts[2] / static_cast<double>(draws) - 0.75) <
        4 * std::sqrt(0.75 * 0.25 / static_cast<double>(draws)));
  for (std::size_t i = static_cast<std::size_t>(draws); i < places.size(); ++i) REQUIRE(places[i] == 1);
}

TEST_CASE("multinomial without replacement leaves out what was drawn") {
  Generator generator(2);
  const int64_t rows = 20000;
  const Tensor weights = tensor({1.0F, 2.0F, 0.0F, 5.0F});
  std::vector<double> firsts(4);
  double one_after_three = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto drawn = multinomial(weights, 3, {}, generator).to_vector<int64_t>();
    REQUIRE(std::set<int64_t>(drawn.begin(), drawn.end()) == std::set<int64_t>{0, 1, 3});
    ++firsts[static_cast<std::size_t>(drawn[0])];
    one_after_three += drawn[0] == 3 && drawn[1] == 1 ? 1 : 0;
  }
  const auto is_near = [&](double count, double p) {
    const auto n = static_cast<double>(rows);
    return std::abs(count / n - p) < 4 * std::sqrt(p * (1 - p) / n);
  };
  CHECK(is_near(firsts[0], 1.0 / 8));
  CHECK(is_near(firsts[3], 5.0 / 8));
  CHECK(is_near(one_after_three, 5.0 / 8 * 2.0 / 3));
}

TEST_CASE("multinomial has the shape, and repeats with the generator") {
  Generator one(3), other(3);
  const Tensor weights = full({5, 7}, 0.5);
  const Tensor drawn = multinomial(weights, 4, {}, one);
  CHECK(drawn.shape() == Shape{5, 4});
  CHECK(drawn.dtype() == int64);
  CHECK(drawn.to_vector<int64_t>() == multinomial(weights, 4, {}, other).to_vector<int64_t>());
  CHECK(multinomial(weights.to(float16), 9, {.replacement = true}, one).shape() == Shape{5, 9});
  CHECK(multinomial(zeros({0, 3}), 2).shape() == Shape{0, 2});
  // Weights whose sum no number holds.
  const double most = std::numeric_limits<double>::max();
  CHECK(multinomial(tensor({most, 0.0, most}, float64), 8, {.replacement = true}, one).shape() == Shape{8});
}

TEST_CASE("multinomial refuses what are no weights") {
  const auto message = [](const Tensor& weights, int64_t samples, bool replacement = false) {
    try {
      (void)multinomial(weights, samples, {.replacement = replacement});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message(ones({2, 3, 4}), 1), Contains("must be [K] or [N, K]"));
  CHECK_THAT(message(ones({2, 0}), 1), Contains("K of at least 1"));
  CHECK_THAT(message(arange(3), 1), Contains("convert them with to(float32)"));
  CHECK_THAT(message(ones({3}), 0), Contains("num_samples must be at least 1, got 0"));
  CHECK_THAT(message(ones({3}), 4), Contains("4 places cannot be drawn from 3 without .replacement = true"));
  CHECK_THAT(message(tensor({1.0F, 0.0F}), 2), Contains("where 1 have a weight above 0"));
  CHECK_THAT(message(tensor({1.0F, -1.0F}), 1),
             Contains("negative, infinite or NaN; of logits take softmax"));
  CHECK_THAT(message(tensor({1.0F, NAN}), 1), Contains("negative, infinite or NaN"));
  CHECK_THAT(message(zeros({2}), 1, true), Contains("a row has no weight above 0"));
}
