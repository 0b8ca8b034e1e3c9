#include "pleat/nn/init.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;
using namespace pleat::nn;
using Catch::Matchers::Contains;
using test::Json;

namespace {

/// Mean, deviation and extremes of many numbers.
struct Statistics {
  double mean = 0, std = 0, low = 0, high = 0;
  explicit Statistics(const Tensor& x) {
    const auto values = x.to_vector<double>();
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values)
      std += (value - mean) * (value - mean) / static_cast<double>(values.size());
    std = std::sqrt(std);
    low = *std::min_element(values.begin(), values.end());
    high = *std::max_element(values.begin(), values.end());
  }
};

std::optional<double> optional(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<double>(json.get<double>());
}

init::KaimingOptions kaiming(const Json& o) {
  return {.a = o.at("a"), .mode = o.at("mode"), .nonlinearity = o.at("nonlinearity")};
}

}  // namespace

TEST_CASE("gains and fans are those recorded") {
  for (const Json& entry : test::fixture_cases("init", "calculate_gain")) {
    const Json& o = entry.at("options");
    CHECK(init::calculate_gain(o.at("nonlinearity"), optional(o.at("param"))) ==
          Approx(entry.at("outputs").at("gain").get<double>()).epsilon(1e-15));
  }
  for (const Json& entry : test::fixture_cases("init", "fan_in_and_fan_out")) {
    const init::Fans fans = init::fan_in_and_fan_out(empty(entry.at("options").at("shape").get<Shape>()));
    CHECK(fans.in == entry.at("outputs").at("fan_in"));
    CHECK(fans.out == entry.at("outputs").at("fan_out"));
  }
  CHECK_THROWS_WITH(init::calculate_gain("swish"), Contains("got 'swish'"));
  CHECK_THROWS_AS(init::fan_in_and_fan_out(empty({3})), ShapeError);
}

TEST_CASE("initialisers draw from the recorded distributions") {
  // The same generator gives the numbers of the recorded distribution: that the bounds agree is seen exactly.
  const auto check_draw = [](const Json& wanted, const Tensor& got, uint64_t seed) {
    Generator generator(seed);
    Tensor reference = empty(got.shape(), {.dtype = float64});
    if (wanted.at("distribution") == "uniform")
      fill_uniform_(reference, wanted.at("low"), wanted.at("high"), generator);
    else
      fill_normal_(reference, wanted.at("mean"), wanted.at("std"), generator);
    const auto a = got.to_vector<double>();
    const auto b = reference.to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    CHECK(worst < 1e-13);
  };
  for (const std::string op : {"kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"})
    for (const Json& entry : test::fixture_cases("init", op)) {
      CAPTURE(entry.at("name").get<std::string>());
      const Json& o = entry.at("options");
      Generator generator(7);
      const Tensor w = empty(o.at("shape").get<Shape>(), {.dtype = float64});
      if (op == "kaiming_uniform_")
        init::kaiming_uniform_(w, kaiming(o), generator);
      else if (op == "kaiming_normal_")
        init::kaiming_normal_(w, kaiming(o), generator);
      else if (op == "xavier_uniform_")
        init::xavier_uniform_(w, o.at("gain"), generator);
      else
        init::xavier_normal_(w, o.at("gain"), generator);
      check_draw(entry.at("outputs"), w, 7);
    }
}

TEST_CASE("drawn numbers have the statistics of their distribution") {
  const Tensor w = empty({200, 100, 3, 3});  // 180,000 numbers: deviations of the mean of 0.0024 std
  manual_seed(1);
  const Statistics uniform(init::uniform_(w, -1, 3));
  CHECK(uniform.mean == Approx(1).margin(0.015));
  CHECK(uniform.std == Approx(4 / std::sqrt(12)).epsilon(0.01));
  CHECK(uniform.low >= -1);
  CHECK(uniform.high < 3);
  const Statistics normal(init::normal_(w, 2, 0.5));
  CHECK(normal.mean == Approx(2).margin(0.006));
  CHECK(normal.std == Approx(0.5).epsilon(0.01));
  const Statistics he(init::kaiming_normal_(w, {.mode = "fan_out", .nonlinearity = "relu"}));
  CHECK(he.std == Approx(std::sqrt(2.0 / 1800)).epsilon(0.01));

  // Of a standard normal number within two deviations: std^2 = 1 - 2 * 2 * pdf(2) / (cdf(2) - cdf(-2)).
  const Statistics truncated(init::trunc_normal_(w, {.mean = 1, .std = 0.1, .low = 0.8, .high = 1.2}));
  CHECK(truncated.mean == Approx(1).margin(0.002));
  CHECK(truncated.std == Approx(0.1 * std::sqrt(1 - 4 * 0.0539909665 / 0.9544997361)).epsilon(0.01));
  CHECK(truncated.low >= 0.8F);
  CHECK(truncated.high <= 1.2F);
  // Far tails on both sides, where the density falls as exp(-10 x) and a mean lies pdf(10) / below(-10)
  // = 10.0981 out.
  const Statistics above(init::trunc_normal_(w, {.low = 10, .high = 12}));
  CHECK(above.low >= 10);
  CHECK(above.mean == Approx(10.0981).margin(0.002));
  const Statistics below(init::trunc_normal_(w, {.mean = 3, .low = -20, .high = -7}));
  CHECK(below.high <= -7);
  CHECK(below.mean == Approx(-7.0981).margin(0.002));

  CHECK(Statistics(init::constant_(w, 0.25)).low == 0.25);
  CHECK(Statistics(init::ones_(w)).low == 1);
  CHECK(Statistics(w).high == 1);
  CHECK(Statistics(init::zeros_(w)).high == 0);
}

TEST_CASE("orthogonal weights keep lengths") {
  for (const Shape& shape : {Shape{6, 6}, Shape{3, 8}, Shape{8, 2, 2}, Shape{4, 2, 3, 3}}) {
    const Tensor w = empty(shape, {.dtype = float64});
    CHECK(&init::orthogonal_(w, 2) == &w);
    const auto v = w.to_vector<double>();
    const auto rows = static_cast<std::size_t>(shape[0]);
    const std::size_t columns = v.size() / rows;
    const bool wide = rows <= columns;
    const std::size_t vectors = wide ? rows : columns;
    for (std::size_t i = 0; i < vectors; ++i)
      for (std::size_t j = 0; j < vectors; ++j) {
        double dot = 0;
        for (std::size_t k = 0; k < (wide ? columns : rows); ++k)
          dot += wide ? v[i * columns + k] * v[j * columns + k] : v[k * columns + i] * v[k * columns + j];
        CHECK(dot == Approx(i == j ? 4 : 0).margin(1e-12));
      }
  }
}

TEST_CASE("dirac weights pass channels on") {
  const Tensor w = empty({4, 3, 3}, {.format = MemoryFormat::channels_last});
  init::dirac_(w, 2);
  std::vector<float> wanted(36, 0);
  // Each group's outputs 0 and 1 take its inputs 0 and 1, at the kernel's middle.
  for (const std::size_t at : {0 * 9 + 0 * 3 + 1, 1 * 9 + 1 * 3 + 1, 2 * 9 + 0 * 3 + 1, 3 * 9 + 1 * 3 + 1})
    wanted[at] = 1;
  CHECK(w.to_vector() == wanted);
  CHECK_THROWS_AS(init::dirac_(w, 3), ShapeError);
}

TEST_CASE("a seed gives the same weights in any format and with any number of threads") {
  const int threads = num_threads();
  std::set<std::vector<float>> results;
  for (const int n : {1, 3})
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
      set_num_threads(n);
      manual_seed(5);
      const Tensor w = empty({64, 32, 3, 3}, {.format = format});
      std::vector<float> all = init::kaiming_uniform_(w).to_vector();
      const auto normal = init::trunc_normal_(w).to_vector();
      all.insert(all.end(), normal.begin(), normal.end());
      results.insert(all);
    }
  set_num_threads(threads);
  CHECK(results.size() == 1);
}

TEST_CASE("initialisers refuse what they cannot fill") {
  CHECK_THROWS_AS(init::zeros_(empty({2}, {.dtype = int64})), DTypeError);
  CHECK_THROWS_WITH(init::kaiming_uniform_(empty({2, 2}), {.mode = "fan"}),
                    "kaiming_uniform_: mode must be 'fan_in' or 'fan_out', got 'fan'");
  CHECK_THROWS_AS(init::xavier_normal_(empty({2})), ShapeError);
  CHECK_THROWS_AS(init::orthogonal_(empty({2})), ShapeError);
  CHECK_THROWS_AS(init::trunc_normal_(empty({2}), {.low = 1, .high = 1}), ValueError);
  CHECK(init::orthogonal_(empty({0, 3})).numel() == 0);
  CHECK(init::kaiming_normal_(empty({4, 0})).numel() == 0);
}

TEST_CASE("truncated normal numbers are inside in every type") {
  for (const DType dtype : {float16, bfloat16, float32, float64})
    for (const auto& [low, high] : {std::pair{37.5, 37.9}, {-0.7, 0.1}, {0.3, 100.0}, {-40.0, -38.2}}) {
      CAPTURE(name(dtype), low, high);
      const Tensor x = empty({2000}, dtype);
      nn::init::trunc_normal_(x, {.mean = 0, .std = 1, .low = low, .high = high});
      for (const double value : x.to_vector<double>()) REQUIRE((value >= low && value <= high));
    }
}
