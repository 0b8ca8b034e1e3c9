#include <array>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/elementwise/select.h"
#include "pleat/tests/catch.h"

/// The tables of docs/types.md, entry by entry.

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

constexpr std::array types = {boolean, uint8, int32, int64, bfloat16, float16, float32, float64};

/// promoted[i][j] is the type of a result of types[i] and types[j].
constexpr DType promoted[8][8] = {
    {boolean, uint8, int32, int64, bfloat16, float16, float32, float64},
    {uint8, uint8, int32, int64, bfloat16, float16, float32, float64},
    {int32, int32, int32, int64, bfloat16, float16, float32, float64},
    {int64, int64, int64, int64, bfloat16, float16, float32, float64},
    {bfloat16, bfloat16, bfloat16, bfloat16, bfloat16, float32, float32, float64},
    {float16, float16, float16, float16, float32, float16, float32, float64},
    {float32, float32, float32, float32, float32, float32, float32, float64},
    {float64, float64, float64, float64, float64, float64, float64, float64},
};

Tensor one(DType dtype) { return ones({2}, {.dtype = dtype}); }

DType floating(DType dtype) { return dtype < bfloat16 ? float32 : dtype; }

}  // namespace

TEST_CASE("types of two tensors are promoted as the table says") {
  for (std::size_t i = 0; i < types.size(); ++i)
    for (std::size_t j = 0; j < types.size(); ++j) {
      const Tensor a = one(types[i]);
      const Tensor b = one(types[j]);
      const DType wanted = promoted[i][j];
      CAPTURE(name(types[i]), name(types[j]));
      CHECK(maximum(a, b).dtype() == wanted);
      CHECK(minimum(a, b).dtype() == wanted);
      CHECK(where(a != 0, a, b).dtype() == wanted);
      CHECK((a / b).dtype() == floating(wanted));
      CHECK(atan2(a, b).dtype() == floating(wanted));
      CHECK(lerp(a, b, one(boolean)).dtype() == floating(wanted));
      CHECK((a == b).to_vector<bool>() == std::vector<bool>{true, true});
      // A tensor of rank 0 counts like any other.
      CHECK(maximum(a, ones({}, {.dtype = types[j]})).dtype() == wanted);
      if (wanted == boolean) {
        CHECK_THROWS_AS(a + b, DTypeError);
        CHECK_THROWS_AS(pow(a, b), DTypeError);
        continue;
      }
      CHECK((a + b).dtype() == wanted);
      CHECK((a - b).dtype() == wanted);
      CHECK((a * b).dtype() == wanted);
      CHECK(pow(a, b).dtype() == wanted);
      CHECK(remainder(a, b).dtype() == wanted);
      CHECK((a + b).to_vector() == std::vector<float>{2, 2});
    }
}

TEST_CASE("a plain number lifts the category, never the size") {
  for (const DType dtype : types) {
    CAPTURE(name(dtype));
    const Tensor x = one(dtype);
    const DType with_integer = dtype == boolean ? int64 : dtype;
    CHECK((x + 1).dtype() == with_integer);
    CHECK((1 - x).dtype() == with_integer);
    CHECK((x * 2).dtype() == with_integer);
    CHECK(pow(x, 2).dtype() == with_integer);
    CHECK(where(x != 0, x, 1).dtype() == with_integer);
    CHECK((x + 1.5).dtype() == floating(dtype));
    CHECK((1.5 - x).dtype() == floating(dtype));
    CHECK((x * 1.5).dtype() == floating(dtype));
    CHECK(pow(x, 1.5).dtype() == floating(dtype));
    CHECK(where(x != 0, x, 1.5).dtype() == floating(dtype));
    CHECK((x / 2).dtype() == floating(dtype));
    CHECK(where(x != 0, x, true).dtype() == dtype);
    CHECK((x > 0).dtype() == boolean);
  }
}

TEST_CASE("in-place arithmetic keeps the type, or refuses") {
  for (const DType own : types)
    for (const DType other : types) {
      CAPTURE(name(own), name(other));
      const Tensor x = one(own);
      const Tensor y = one(other);
      const bool loses = own < bfloat16 && other >= bfloat16;
      if (loses) {
        CHECK_THROWS_AS(x += y, DTypeError);
      } else if (own == boolean && other == boolean) {
        CHECK_THROWS_AS(x += y, DTypeError);
      } else {
        x += y;
        CHECK(x.dtype() == own);
        CHECK(x.to_vector() ==
              std::vector<float>{own == boolean ? 1.0f : 2.0f, own == boolean ? 1.0f : 2.0f});
      }
      if (own < bfloat16)
        CHECK_THROWS_WITH(x /= y, Contains("divide_: the result is floating, which a tensor of"));
    }
  const Tensor n = tensor({1, 2});
  CHECK_THROWS_AS(n *= 0.5, DTypeError);
  n *= 3;
  n -= 1;
  CHECK(n.to_vector<int>() == std::vector<int>{2, 5});
  const Tensor h = ones({2}, {.dtype = float16});
  h += ones({2}, {.dtype = float64});
  CHECK(h.dtype() == float16);
  CHECK(h.to_vector() == std::vector<float>{2, 2});
}

TEST_CASE("integers wrap around") {
  CHECK((tensor({250}, uint8) + tensor({10}, uint8)).to_vector<int>() == std::vector<int>{4});
  CHECK((tensor({2147483647}, int32) + 1).to_vector<int64_t>() == std::vector<int64_t>{-2147483648});
  CHECK((-tensor({1}, uint8)).to_vector<int>() == std::vector<int>{255});
  CHECK((tensor({65536}, int32) * 65536).to_vector<int>() == std::vector<int>{0});
}
