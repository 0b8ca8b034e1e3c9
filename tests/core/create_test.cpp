#include "pleat/core/tensor/create.h"

#include <array>
#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/half.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("ranges and special matrices", "[core]") {
  CHECK(arange(4).to_vector<int>() == std::vector<int>{0, 1, 2, 3});
  CHECK(arange(1, 8, 3).to_vector<int>() == std::vector<int>{1, 4, 7});
  CHECK(arange(3, 0, -1).to_vector<int>() == std::vector<int>{3, 2, 1});
  CHECK(arange(0, 1, 0.25).to_vector() == std::vector<float>{0, 0.25F, 0.5F, 0.75F});
  CHECK(arange(3, "cpu").dtype() == int64);
  CHECK(arange(3, {.device = default_device()}).dtype() == int64);
  CHECK(arange(0, 3, 0.5, {.device = default_device()}).dtype() == float32);
  CHECK(arange(3, float64).dtype() == float64);
  CHECK(arange(0).numel() == 0);
  CHECK(linspace(0, 1, 5).to_vector() == std::vector<float>{0, 0.25F, 0.5F, 0.75F, 1});
  CHECK(linspace(2, 3, 1).to_vector() == std::vector<float>{2});
  CHECK(linspace(-1, 0.3, 1000).to_vector<double>().back() == static_cast<double>(0.3F));
  CHECK(arange(1, 4, 1, {.dtype = float16}).to_vector() == std::vector<float>{1, 2, 3});
  CHECK(arange(0, 3, 1, {.dtype = uint8}).to_vector<int>() == std::vector<int>{0, 1, 2});
  CHECK(eye(2, 3).to_vector() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK_THROWS_AS(arange(0, 4, -1), ValueError);
  CHECK_THROWS_AS(arange(0, 4, 0), ValueError);
  CHECK_THROWS_AS(linspace(0, 1, 0), ValueError);
}

TEST_CASE("memory of somebody else is viewed, not copied", "[core]") {
  std::array<float, 6> memory = {0, 1, 2, 3, 4, 5};
  const Tensor t = from_memory(memory.data(), {2, 2}, float32, nullptr, {3, 1});
  CHECK(t.to_vector() == std::vector<float>{0, 1, 3, 4});
  ops::fill(t, 9);
  CHECK(memory == std::array<float, 6>{9, 9, 2, 9, 9, 5});
  CHECK_THROWS_AS(from_memory(nullptr, {2}, float32), ValueError);
  CHECK_THROWS_AS(from_memory(reinterpret_cast<char*>(memory.data()) + 1, {1}, float32), ValueError);
  CHECK_THROWS_AS(from_memory(memory.data(), {2, 2}, float32, nullptr, {1}), ShapeError);
}

TEST_CASE("vectors go in and come out", "[core]") {
  CHECK(from_vector(std::vector<int32_t>{1, 2, 3, 4}, {2, 2}).dtype() == int32);
  CHECK(from_vector(std::vector<bool>{true, false}, {2}).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK_THROWS_WITH(from_vector(std::vector<float>{1, 2, 3}, {2, 2}), Contains("needs 4 values, got 3"));
  CHECK_THROWS_AS(zeros({-1}), ShapeError);
  CHECK_THROWS_WITH(zeros({2}).item(), Contains("item: needs a tensor of one element"));
  CHECK_THROWS_WITH(zeros({2}).data<double>(), Contains("holds float32, not float64"));
  CHECK_THROWS_WITH(Tensor().shape(), Contains("undefined"));
}

TEST_CASE("half types round to nearest even and keep infinities and NaN", "[core]") {
  const auto half = [](float v) { return static_cast<float>(Half(v)); };
  CHECK(half(1.0F) == 1.0F);
  CHECK(half(65504) == 65504);
  CHECK(half(65520) == std::numeric_limits<float>::infinity());
  CHECK(half(2049) == 2048);  // between 2048 and 2050: even
  CHECK(half(2051) == 2052);
  CHECK(half(0x1p-24F) == 0x1p-24F);
  CHECK(half(0x1p-26F) == 0);
  CHECK(half(-0x1.8p-24F) == -0x1p-23F);
  CHECK(std::isnan(half(std::numeric_limits<float>::quiet_NaN())));
  const auto bfloat = [](float v) { return static_cast<float>(BFloat16(v)); };
  CHECK(bfloat(1.0F) == 1.0F);
  CHECK(bfloat(257) == 256);
  CHECK(bfloat(259) == 260);
  CHECK(std::isnan(bfloat(std::numeric_limits<float>::quiet_NaN())));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half h;
    h.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(h);
    if (!std::isnan(value)) REQUIRE(Half(value).bits == h.bits);
  }
}

TEST_CASE("types are promoted as the table says", "[core]") {
  CHECK(promote(boolean, uint8) == uint8);
  CHECK(promote(uint8, int64) == int64);
  CHECK(promote(int64, float16) == float16);
  CHECK(promote(float16, bfloat16) == float32);
  CHECK(promote(bfloat16, float32) == float32);
  CHECK(promote(float32, float64) == float64);
  CHECK(promote_with_number(float16, 2.0) == float16);
  CHECK(promote_with_number(int32, 2.0) == float32);
  CHECK(promote_with_number(uint8, 2) == uint8);
  CHECK(promote_with_number(boolean, 2) == int64);
  CHECK(promote_with_number(boolean, true) == boolean);
}

TEST_CASE("a view must stay inside its storage", "[core]") {
  const Tensor t = zeros({4});
  CHECK_THROWS_AS(t.as_strided({5}, {1}, 0), ShapeError);
  CHECK_THROWS_AS(t.as_strided({2}, {1}, -1), ShapeError);
  CHECK_THROWS_AS(t.as_strided({2, 2}, {int64_t{1} << 62, 1}, 0), ShapeError);
  CHECK(t.as_strided({2, 2}, {1, 1}, 1).shape() == Shape{2, 2});
}
