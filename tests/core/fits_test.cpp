#include "pleat/core/tensor/fits.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();

}  // namespace

TEST_CASE("which numbers fit which type", "[core][limits]") {
  for (const int64_t value : {int64_t{0}, int64_t{255}}) CHECK(fits(value, uint8));
  for (const int64_t value : {int64_t{-1}, int64_t{256}, least, most}) CHECK_FALSE(fits(value, uint8));
  for (const double value : {-0.5, 255.9, 2.7}) CHECK(fits(value, uint8));
  for (const double value : {-1.0, 256.0, not_a_number, infinity, -infinity}) CHECK_FALSE(fits(value, uint8));
  CHECK(fits(int64_t{1} << 30, int32));
  CHECK_FALSE(fits(int64_t{1} << 31, int32));
  CHECK(fits(-2147483648.5, int32));
  CHECK_FALSE(fits(-2147483649.0, int32));
  CHECK(fits(least, int64));
  CHECK(fits(-0x1p63, int64));
  CHECK_FALSE(fits(0x1p63, int64));
  CHECK_FALSE(fits(not_a_number, int64));
  CHECK(fits(65504, float16));
  CHECK(fits(65519, float16));  // rounds to 65504
  CHECK_FALSE(fits(65520, float16));
  CHECK_FALSE(fits(1e6, float16));
  CHECK(fits(1e6, bfloat16));
  CHECK_FALSE(fits(1e39, bfloat16));
  CHECK_FALSE(fits(1e39, float32));
  CHECK(fits(1e300, float64));
  for (const DType dtype : {float16, bfloat16, float32, float64})
    for (const double value : {not_a_number, infinity, -infinity, 1e-300}) CHECK(fits(value, dtype));
  for (const double value : {not_a_number, infinity, 2.0}) CHECK(fits(value, boolean));
  CHECK_THROWS_WITH(check_fits("full", 300, uint8),
                    "full: 300 does not fit uint8 (0 to 255); use a type that holds it, for instance int64: "
                    "x.to(int64)");
}

TEST_CASE("a number that an element cannot hold is refused wherever one is given", "[core][limits]") {
  const Tensor bytes = ones({2}, {.dtype = uint8});
  const Tensor halves = ones({2}, {.dtype = float16});
  const Tensor mask = tensor({true, false});
  const std::vector<std::function<Tensor()>> refused = {
      [] { return full({1}, 300, {.dtype = uint8}); },
      [] { return full({1}, -1, {.dtype = uint8}); },
      [] { return full({1}, not_a_number, {.dtype = int64}); },
      [] { return full({1}, 1e6, {.dtype = float16}); },
      [&] { return full_like(bytes, 256); },
      [&] { return fill_(bytes, 300); },
      [&] { return fill_(bytes, infinity); },
      [] { return scalar(300, uint8); },
      [] { return scalar(not_a_number, int32); },
      [] { return scalar(1e300); },
      [] { return tensor({300}, uint8); },
      [] {
        return tensor({1.0, not_a_number}, int64);
      },
      [] { return tensor({most}, int32); },
      [&] { return bytes + 300; },
      [&] { return bytes - 300; },
      [&] { return bytes * -1; },
      [&] { return 300 - bytes; },
      [&] { return halves * 1e6; },
      [&] { return bytes += 300; },
      [&] { return pow(bytes, 300); },
      [&] { return remainder(bytes, 300); },
      [&] { return where(mask, bytes, 300); },
      [&] { return where(mask, -1, bytes); },
      [&] { return masked_fill(bytes, mask, 300); },
      [&] { return masked_fill_(bytes, mask, 300); },
      [&] { return masked_fill(halves, mask, -1e9); },
      [&] { return scatter(bytes, 0, tensor({0}), 300); },
      [&] {
        return pad(bytes, {1, 1}, {.value = 300});
      },
      [&] {
        return pad(bytes, {1, 1}, {.value = not_a_number});
      },
      [&] { return clamp(bytes, {.min = 300}); },
      [&] { return clamp(bytes, {.max = -1}); },
      [&] { return clamp(halves, {.min = 1e6}); },
      [] { return arange(0, 300, 1, {.dtype = uint8}); },
      [] { return arange(5, -5, -1, {.dtype = uint8}); },
      [] { return arange(0, 70000, 1, {.dtype = float16}); },
      [] { return arange(0.0, 300.0, 0.5, {.dtype = uint8}); },
      [] { return linspace(0, 300, 4, {.dtype = uint8}); },
      [] { return linspace(0, infinity, 4); },
      [] { return linspace(not_a_number, 1, 4); },
  };
  for (std::size_t i = 0; i < refused.size(); ++i) {
    INFO("call " << i);
    CHECK_THROWS_AS(refused[i](), ValueError);
  }
  CHECK(bytes.to_vector<int64_t>() == std::vector<int64_t>{1, 1});  // as it was
  CHECK_THROWS_WITH(bytes + 300, Contains("add: 300 does not fit uint8 (0 to 255)"));
  CHECK_THROWS_AS(tensor({not_a_number}).item<int64_t>(), ValueError);
  CHECK_THROWS_AS(tensor({300}).item<uint8_t>(), ValueError);
  CHECK_THROWS_AS(tensor({2.5}).item<int64_t>(), ValueError);
  CHECK(tensor({-2.0}).item<int64_t>() == -2);
}

TEST_CASE("a number that fits goes in as it is", "[core][limits]") {
  CHECK(full({1}, 255, {.dtype = uint8}).item<int64_t>() == 255);
  CHECK(full({1}, 2.7, {.dtype = int64}).item<int64_t>() == 2);
  CHECK(full({1}, -2.7, {.dtype = int32}).item<int64_t>() == -2);
  CHECK(full({1}, not_a_number, {.dtype = boolean}).item<bool>());
  CHECK(std::isinf(full({1}, infinity, {.dtype = float16}).item()));
  CHECK(std::isinf(masked_fill(ones({1}, {.dtype = float16}), tensor({true}), -infinity).item()));
  CHECK(tensor({least, most}).to_vector<int64_t>() == std::vector<int64_t>{least, most});
  const Tensor bytes = tensor({30}, uint8);
  CHECK((bytes / 300).item() == Approx(0.1));  // floating anyway
  CHECK((300 / bytes).item() == Approx(10));
  CHECK(clamp(bytes, {.min = -5, .max = 300}).item<int64_t>() == 30);
}

TEST_CASE("numbers that a tensor's type cannot hold compare right", "[core][limits]") {
  const Tensor bytes = tensor({0, 255}, uint8);
  CHECK_FALSE(any(bytes == 256).item<bool>());
  CHECK(all(bytes > -1).item<bool>());
  const Tensor halves = tensor({65504.0, infinity}, float16);
  CHECK((halves > 1e6).to_vector<bool>() == std::vector<bool>{false, true});
  CHECK_FALSE(any(halves == 1e6).item<bool>());
  CHECK_FALSE(any(tensor({infinity}) == 1e300).item<bool>());
  CHECK((tensor({infinity}) > 1e300).item<bool>());
}

TEST_CASE("floating elements become integers in one way on every device", "[core][limits]") {
  const std::vector<double> from = {not_a_number, infinity,    -infinity, -0.9,    -1.5,  255.9, 256,
                                    0x1p31,       -0x1p31 - 1, 0x1p63,    -0x1p63, 1e300, 2.7};
  const std::vector<int64_t> bytes = {0, 255, 0, 0, 0, 255, 255, 255, 0, 255, 0, 255, 2};
  constexpr int64_t top = 2147483647;
  const std::vector<int64_t> ints = {0, top, -top - 1, 0, -1, 255, 256, top, -top - 1, top, -top - 1, top, 2};
  const std::vector<int64_t> longs = {0,       most,     least, 0,     -1,   255, 256,
                                      top + 1, -top - 2, most,  least, most, 2};
  const Tensor x = from_vector(from);
  CHECK(x.to(uint8).to_vector<int64_t>() == bytes);
  CHECK(x.to(int32).to_vector<int64_t>() == ints);
  CHECK(x.to(int64).to_vector<int64_t>() == longs);
  const Tensor halves = tensor({not_a_number, infinity, -infinity, 300.0, -2.5}, float16);
  CHECK(halves.to(uint8).to_vector<int64_t>() == std::vector<int64_t>{0, 255, 0, 255, 0});
  CHECK(halves.to(int32).to_vector<int64_t>() == std::vector<int64_t>{0, top, -top - 1, 300, -2});
  // Integers wrap around.
  CHECK(tensor({int64_t{300}, int64_t{-1}, most}).to(uint8).to_vector<int64_t>() ==
        std::vector<int64_t>{44, 255, 255});
  Tensor into = zeros({1}, {.dtype = int32});
  ops::copy_into(into, tensor({not_a_number}));
  CHECK(into.item<int64_t>() == 0);
}

TEST_CASE("arange reaches the ends of int64", "[core][limits]") {
  CHECK(arange(most - 1, most, 5).to_vector<int64_t>() == std::vector<int64_t>{most - 1});
  CHECK(arange(most - 2, most).to_vector<int64_t>() == std::vector<int64_t>{most - 2, most - 1});
  CHECK(arange(least + 1, least, -1).to_vector<int64_t>() == std::vector<int64_t>{least + 1});
  CHECK(arange(least, most, int64_t{1} << 62).to_vector<int64_t>() ==
        std::vector<int64_t>{least, -(int64_t{1} << 62), 0, int64_t{1} << 62});
  CHECK(arange(most, least, least).to_vector<int64_t>() == std::vector<int64_t>{most, -1});
  CHECK(arange(0, 2.5, 1).to_vector<double>() == std::vector<double>{0, 1, 2});
  CHECK_THROWS_AS(arange(least, most, 1), ShapeError);
  CHECK_THROWS_AS(arange(int64_t{1} << 45), OutOfMemoryError);
  CHECK_THROWS_AS(arange(0, most, -1), ValueError);
  CHECK_THROWS_AS(arange(0, 5, 0), ValueError);
}

TEST_CASE("integers go in, through and out with all their digits", "[core][limits]") {
  constexpr int64_t odd = (int64_t{1} << 53) + 1;  // float64 has only its neighbours
  for (const int64_t value : {most, most - 1, least + 1, odd, -odd}) {
    const std::string text = std::to_string(value);
    const Tensor x = full({1}, value, int64);
    CHECK(to_string(x) == "[" + text + "]");
    CHECK(to_string(scalar(value)) == text);
    CHECK(to_string(tensor({{value, 7}})).find(text) != std::string::npos);
    CHECK(full_like(x, value).item<int64_t>() == value);
    CHECK(array_equal(x, tensor({value})));
    CHECK(array_equal(x, tensor(std::vector<int64_t>{value})));
    CHECK(sum(x == value).item<int64_t>() == 1);
    CHECK(sum(x == value - 1).item<int64_t>() == 0);
    CHECK(clamp(x, {.min = value}).item<int64_t>() == value);
    CHECK(masked_fill(zeros_like(x), tensor({true}), value).item<int64_t>() == value);
    CHECK(arange(value, value - 1, -1).item<int64_t>() == value);
    CHECK_THROWS_WITH(x.item<double>(),
                      "item: " + text + " would be rounded as float64; read it by item<int64_t>()");
    CHECK_THROWS_AS(Real(value), ValueError);
    CHECK_THROWS_WITH(arange(value, 0, value > 0 ? 1 : -1), Contains("start " + text));
    CHECK_THROWS_WITH(full({1}, value, int32), Contains("full: " + text + " does not fit int32"));
  }
  CHECK(scalar(least).item<double>() == -0x1p63);
  CHECK(scalar(int64_t{1} << 60).item<float>() == 0x1p60F);
  CHECK_THROWS_AS(scalar(16777217).item<float>(), ValueError);
  CHECK_THROWS_AS(scalar(2049).item<Half>(), ValueError);
  CHECK_THROWS_AS(scalar(most).item<BFloat16>(), ValueError);
  CHECK(double{Real(int64_t{1} << 62)} == 0x1p62);
  CHECK(double{Real(least)} == -0x1p63);
  CHECK_THROWS_WITH(Real(odd), Contains("9007199254740993 would be rounded") && Contains("9007199254740992"));
  CHECK_THROWS_AS(linspace(0, most, 3), ValueError);
  CHECK_THROWS_AS(tensor({std::numeric_limits<uint64_t>::max()}), ValueError);
}
