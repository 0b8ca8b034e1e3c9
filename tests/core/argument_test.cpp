#include "pleat/core/base/argument.h"

#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "pleat/core/base/error.h"
#include "pleat/core/base/required.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/options.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/tests/catch.h"

// What must not compile: tests/refused_calls/.

using namespace pleat;
using Catch::Matchers::Contains;

TEST_CASE("a list of integers is given as a number, a list, a vector, an array or a span", "[argument]") {
  const std::vector<int64_t> two{3, 4};
  const std::vector<int> ints{3, 4};
  const std::array<unsigned, 2> naturals{3, 4};
  const std::size_t length = 3;
  CHECK(Dims().empty());
  CHECK(Dims(3) == std::vector<int64_t>{3});
  CHECK(Dims{3, 4} == two);
  CHECK(Dims{length, -1} == std::vector<int64_t>{3, -1});
  CHECK(Sizes(ints) == two);
  CHECK(Sizes(naturals) == two);
  CHECK(PerDim(std::span<const int>(ints)) == two);
  CHECK(PerDim(std::vector<std::size_t>{3, 4}) == two);
  CHECK(Sizes(Dims(two)) == two);
  CHECK(zeros(ints).shape() == two);
  CHECK(zeros(length).shape() == Shape{3});
  CHECK(zeros({}).shape().empty());
  // std::empty(list) is found, too, and must not be it.
  const Tensor of_vector = empty(two), of_ints = empty(ints), of_sizes = empty(Sizes{3, 4});
  CHECK(of_vector.shape() == two);
  CHECK(of_ints.shape() == two);
  CHECK(of_sizes.shape() == two);
  CHECK(empty(naturals).shape() == two);
  const ScaleFactor factors = {2, 1.5};
  CHECK(factors.values() == std::vector<double>{2, 1.5});
}

TEST_CASE("padding is given as a number, a list, pairs or a word", "[argument]") {
  using Sides = std::vector<Padding::Sides>;
  const auto sides = [](const ConvOptions& options) { return options.padding.sides(); };
  CHECK(sides({.padding = 1}) == Sides{{1, 1}});
  CHECK(sides({.padding = {1, 2}}) == Sides{{1, 1}, {2, 2}});
  CHECK(sides({.padding = std::vector<int>{1, 2}}) == Sides{{1, 1}, {2, 2}});
  CHECK(sides({.padding = PerDim{1, 2}}) == Sides{{1, 1}, {2, 2}});
  CHECK(sides({.padding = {{1, 2}}}) == Sides{{1, 2}});
  CHECK(sides({.padding = {{1, 2}, {0, 3}}}) == Sides{{1, 2}, {0, 3}});
  CHECK(sides({.padding = {{1, 2}, {0, 3}, {4, 0}}}) == Sides{{1, 2}, {0, 3}, {4, 0}});
  CHECK(sides({.padding = Sides{{1, 2}}}) == Sides{{1, 2}});
  CHECK(ConvOptions{.padding = "same"}.padding.mode() == "same");
  CHECK(ConvOptions{.padding = std::string("valid")}.padding.mode() == "valid");
}

TEST_CASE("what converts to a number is taken as one", "[argument]") {
  struct Options {
    Required<int64_t> size;
    Required<double> slope;
  };
  const Options options{.size = 3, .slope = 0.5};
  CHECK(zeros({options.size, 2}).shape() == Shape{3, 2});
  CHECK(linspace(options.slope, 1, options.size).to_vector() == std::vector<float>{0.5, 0.75, 1});
  static_assert(!std::convertible_to<std::vector<bool>::reference, Integer>);
  static_assert(!std::convertible_to<Flag, Real>);
}

TEST_CASE("an unsigned number that does not fit int64 is refused", "[argument]") {
  const std::size_t below_zero = std::size_t{0} - 1;
  CHECK_THROWS_WITH(zeros({below_zero}), Contains("18446744073709551615 does not fit int64"));
  CHECK_THROWS_AS(zeros(std::vector<std::size_t>{below_zero}), ValueError);
  CHECK_THROWS_AS(full({1}, below_zero), ValueError);
  CHECK_THROWS_AS(zeros({2}).size(below_zero), ValueError);
}

TEST_CASE("new tensors take a dtype or a device where options go", "[argument]") {
  CHECK(empty({2, 2}, float64).dtype() == float64);
  CHECK(zeros({2, 2}, float64).dtype() == float64);
  CHECK(ones({2, 2}, int64).dtype() == int64);
  CHECK(full({2, 2}, true, boolean).dtype() == boolean);
  CHECK(rand({2, 2}, float16).dtype() == float16);
  CHECK(randn({2, 2}, float64).dtype() == float64);
  CHECK(eye(2, float64).dtype() == float64);
  CHECK(eye(2, 3, float64).shape() == Shape{2, 3});
  CHECK(arange(3, float64).to_vector() == std::vector<float>{0, 1, 2});
  CHECK(arange(1, 3, float64).to_vector() == std::vector<float>{1, 2});
  CHECK(arange(0, 4, 2, float64).dtype() == float64);
  CHECK(arange(3, {.dtype = uint8}).dtype() == uint8);
  CHECK(linspace(0, 1, 3, float64).dtype() == float64);
  CHECK(zeros({2, 2}, Device()).dtype() == float32);
  CHECK(zeros({2, 2}, {}).dtype() == float32);
  const Tensor half = tensor(0.5);
  CHECK(half.rank() == 0);
  CHECK(half.dtype() == float32);
  CHECK(half.item() == 0.5);
  CHECK(tensor(3).dtype() == int64);
  CHECK(tensor(true).dtype() == boolean);
  CHECK(tensor(3, float64).dtype() == float64);
  const Tensor mixed = tensor({1.5, 2});
  CHECK(mixed.dtype() == float32);
  CHECK(mixed.to_vector() == std::vector<float>{1.5, 2});
  CHECK(tensor({{1, 2.5}, {3, 4}}, float64).to_vector<double>() == std::vector<double>{1, 2.5, 3, 4});
  CHECK(tensor({1, int64_t{2}}).dtype() == int64);
}

TEST_CASE("a tensor of the numbers of any list", "[core]") {
  const auto is = [](const Tensor& x, const Shape& shape, DType dtype, const std::vector<double>& values) {
    return x.shape() == shape && x.dtype() == dtype && x.to_vector<double>() == values;
  };
  CHECK(is(tensor(std::vector<float>{1.5, 2}), {2}, float32, {1.5, 2}));
  CHECK(is(tensor(std::vector<double>{1.5, 2}), {2}, float32, {1.5, 2}));
  CHECK(is(tensor(std::vector<double>{0.1}, float64), {1}, float64, {0.1}));
  CHECK(is(tensor(std::vector<int64_t>{1, 2}), {2}, int64, {1, 2}));
  CHECK(is(tensor(std::vector<int>{1, 2}, float16), {2}, float16, {1, 2}));
  CHECK(is(tensor(std::vector<uint8_t>{255}), {1}, int64, {255}));
  CHECK(is(tensor(std::vector<bool>{true, false}), {2}, boolean, {1, 0}));
  CHECK(is(tensor(std::vector<Half>{Half(0.5F)}), {1}, float32, {0.5}));
  CHECK(is(tensor(std::array<int, 3>{1, 2, 3}), {3}, int64, {1, 2, 3}));
  const float numbers[2][2] = {{1, 2}, {3, 4}};
  CHECK(is(tensor(numbers), {2, 2}, float32, {1, 2, 3, 4}));
  CHECK(is(tensor(std::span<const float>(numbers[1])), {2}, float32, {3, 4}));
  const std::vector<std::vector<double>> rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(is(tensor(rows), {2, 3}, float32, {1, 2, 3, 4, 5, 6}));
  CHECK(is(tensor({rows[0], rows[1]}), {2, 3}, float32, {1, 2, 3, 4, 5, 6}));
  CHECK(is(tensor(std::vector<std::array<bool, 2>>{{true, false}}), {1, 2}, boolean, {1, 0}));
  const auto braces = {1, 2};
  CHECK(is(tensor(braces), {2}, int64, {1, 2}));
  CHECK(is(tensor(std::vector<float>{}), {0}, float32, {}));
  CHECK_THROWS_WITH(tensor(std::vector<std::vector<int>>{{1, 2}, {3}}),
                    "tensor: lists of one level must be equally long, got 2 and 1");
  CHECK_THROWS_WITH(tensor(std::vector<int>{300}, uint8),
                    Catch::Matchers::Contains("300 does not fit uint8"));
  CHECK_THROWS_AS(tensor(std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()}), ValueError);
}
