#include "pleat/ops/elementwise/compare.h"

#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<bool> bits(const Tensor& x) {
  CHECK(x.dtype() == boolean);
  return x.to_vector<bool>();
}

using Bits = std::vector<bool>;

}  // namespace

TEST_CASE("comparisons give bool tensors, NaN equals nothing") {
  const Tensor a = tensor({1.0f, 2.0f, 3.0f, not_a_number});
  const Tensor b = tensor({2.0f, 2.0f, 2.0f, not_a_number});
  CHECK(bits(a == b) == Bits{false, true, false, false});
  CHECK(bits(a != b) == Bits{true, false, true, true});
  CHECK(bits(a < b) == Bits{true, false, false, false});
  CHECK(bits(a <= b) == Bits{true, true, false, false});
  CHECK(bits(a > b) == Bits{false, false, true, false});
  CHECK(bits(a >= b) == Bits{false, true, true, false});
}

TEST_CASE("comparisons with numbers, on either side") {
  const Tensor x = tensor({1, 2, 3});
  CHECK(bits(x == 2) == Bits{false, true, false});
  CHECK(bits(x != 2) == Bits{true, false, true});
  CHECK(bits(x < 2) == Bits{true, false, false});
  CHECK(bits(x <= 2) == Bits{true, true, false});
  CHECK(bits(x > 2) == Bits{false, false, true});
  CHECK(bits(x >= 2) == Bits{false, true, true});
  CHECK(bits(2 == x) == Bits{false, true, false});
  CHECK(bits(2 != x) == Bits{true, false, true});
  CHECK(bits(2 < x) == Bits{false, false, true});
  CHECK(bits(2 <= x) == Bits{false, true, true});
  CHECK(bits(2 > x) == Bits{true, false, false});
  CHECK(bits(2 >= x) == Bits{true, true, false});
}

TEST_CASE("comparisons broadcast and take any layout") {
  const Tensor column = reshape(arange(3), {3, 1});
  CHECK(bits(column < arange(2)) == Bits{false, true, false, false, false, false});
  const Tensor x = rand({2, 3, 4, 5});
  const Tensor y = rand({2, 3, 4, 5});
  const Tensor expected = x < y;
  const Tensor last = x.to(MemoryFormat::channels_last) < y;
  CHECK(last.memory_format() == MemoryFormat::channels_last);
  CHECK(array_equal(last, expected));
  CHECK(array_equal(permute(x, {3, 0, 2, 1}) < permute(y, {3, 0, 2, 1}), permute(expected, {3, 0, 2, 1})));
  CHECK((zeros({0, 3}) == 1).shape() == Shape{0, 3});
  CHECK_THROWS_AS(zeros({2}) < zeros({3}), ShapeError);
}

TEST_CASE("tensors of different types are compared in the promoted one") {
  CHECK(bits(tensor({1, 2}) == tensor({1.0, 2.5})) == Bits{true, false});
  CHECK(bits(tensor({true, false}) < tensor({1, 1})) == Bits{false, true});
  CHECK(bits(tensor({false, true}) > tensor({false, false})) == Bits{false, true});
  // float32 against float64: 0.1 differs once widened.
  CHECK(bits(tensor({0.1}) == tensor({0.1}, float64)) == Bits{false});
}

TEST_CASE("numbers that an integer type cannot hold are compared exactly") {
  const Tensor bytes = tensor({0, 255}, uint8);
  CHECK(bits(bytes > -1) == Bits{true, true});
  CHECK(bits(bytes == -1) == Bits{false, false});
  CHECK(bits(bytes < 256) == Bits{true, true});
  CHECK(bits(bytes >= 254.5) == Bits{false, true});
  const Tensor ints = tensor({2147483647}, int32);
  CHECK(bits(ints < int64_t{1} << 31) == Bits{true});
  CHECK(bits(tensor({16777217}) == 16777216.0) == Bits{false});  // equal in float32
  CHECK(bits(tensor({true, false}) == 2) == Bits{false, false});
  CHECK(bits(tensor({true, false}) == true) == Bits{true, false});
}

TEST_CASE("a number is rounded to a floating tensor's type before it is compared") {
  CHECK(bits(tensor({0.1}) == 0.1) == Bits{true});
  CHECK(bits(tensor({0.1}, bfloat16) == 0.1) == Bits{true});
  CHECK(bits(tensor({1.0, 2.0}, float16) > 1.5) == Bits{false, true});
}

TEST_CASE("isnan, isinf and isfinite") {
  for (const DType dtype : {float16, bfloat16, float32, float64}) {
    const Tensor x = tensor({1.0f, infinity, -infinity, not_a_number}, dtype);
    CHECK(bits(isnan(x)) == Bits{false, false, false, true});
    CHECK(bits(isinf(x)) == Bits{false, true, true, false});
    CHECK(bits(isfinite(x)) == Bits{true, false, false, false});
  }
  CHECK(bits(isnan(arange(2))) == Bits{false, false});
  CHECK(bits(isinf(arange(2))) == Bits{false, false});
  CHECK(bits(isfinite(arange(2))) == Bits{true, true});
}

TEST_CASE("array_equal asks for the same shape and elements") {
  const Tensor x = arange(6);
  CHECK(array_equal(x, x.to(float32)));
  CHECK_FALSE(array_equal(x, reshape(x, {2, 3})));
  CHECK_FALSE(array_equal(x, x + 1));
  CHECK_FALSE(array_equal(tensor({not_a_number}), tensor({not_a_number})));
  CHECK(array_equal(zeros({0}), zeros({0})));
}

TEST_CASE("allclose") {
  const Tensor a = tensor({1.0, 100.0}, float64);
  CHECK(allclose(a, a * (1 + 9e-6)));
  CHECK_FALSE(allclose(a, a * (1 + 2e-5)));
  CHECK(allclose(a, a * (1 + 2e-5), {.rtol = 1e-4}));
  CHECK(allclose(tensor({0.0}), tensor({0.25}), {.rtol = 0, .atol = 0.25}));
  CHECK(allclose(tensor({infinity, -infinity}), tensor({infinity, -infinity})));
  CHECK_FALSE(allclose(tensor({infinity}), tensor({-infinity})));
  CHECK_FALSE(allclose(tensor({1.0f}), tensor({infinity})));
  CHECK_FALSE(allclose(tensor({not_a_number}), tensor({not_a_number})));
  CHECK(allclose(tensor({not_a_number}), tensor({not_a_number}), {.equal_nan = true}));
  CHECK(allclose(ones({2, 3}), ones({3})));
  CHECK_THROWS_AS(allclose(ones({2}), ones({3})), ShapeError);
  CHECK_THROWS_WITH(allclose(a, a, {.rtol = -1}), Contains("must not be negative, got rtol = -1"));
}

TEST_CASE("logic takes any type and gives bool") {
  const Tensor a = tensor({0.0f, 0.5f, not_a_number, 0.0f});
  const Tensor b = tensor({0, 2, 0, -1});
  CHECK(bits(logical_and(a, b)) == Bits{false, true, false, false});
  CHECK(bits(logical_or(a, b)) == Bits{false, true, true, true});
  CHECK(bits(logical_xor(a, b)) == Bits{false, false, true, true});
  CHECK(bits(logical_not(a)) == Bits{true, false, false, true});
  CHECK(bits(a && b) == bits(logical_and(a, b)));
  CHECK(bits(a || b) == bits(logical_or(a, b)));
  CHECK(bits(!b) == Bits{true, false, true, false});
  const Tensor x = arange(5);
  CHECK(bits(x > 1 && x < 4) == Bits{false, false, true, true, false});
  CHECK_THROWS_AS(a && arange(3), ShapeError);
}

TEST_CASE("a place among all elements is not compared with several") {
  const Tensor logits = tensor({{0.0, 2.0, 1.0}, {3.0, 1.0, 0.0}});
  const Tensor labels = tensor({1, 0});
  CHECK_THROWS_AS(equal(argmax(logits), labels), ShapeError);
  CHECK_THROWS_WITH(equal(argmax(logits), labels), Contains("argmax(x, 1) gives one for each row"));
  CHECK_THROWS_AS(not_equal(labels, argmin(logits, {}, true)), ShapeError);
  CHECK(equal(argmax(logits, 1), labels).to_vector<int>() == std::vector<int>{1, 1});
  CHECK(equal(argmax(logits), 3).item<bool>());
  CHECK(equal(argmax(logits), tensor(3)).item<bool>());
}

TEST_CASE("a bool is compared with bool tensors") {
  const Tensor truth = tensor({true, false});
  CHECK(equal(truth, true).to_vector<int>() == std::vector<int>{1, 0});
  CHECK(not_equal(true, truth).to_vector<int>() == std::vector<int>{0, 1});
  CHECK_THROWS_AS(equal(tensor({1, 0}), true), DTypeError);
  CHECK_THROWS_WITH(equal(tensor({0.5}), true), Contains("equal: a bool is compared with bool tensors"));
  CHECK(less(1, tensor({1, 2})).to_vector<int>() == std::vector<int>{0, 1});
  CHECK(greater_equal(1, tensor({1, 2})).to_vector<int>() == std::vector<int>{1, 0});
}
