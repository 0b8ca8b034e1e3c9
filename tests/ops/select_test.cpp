#include "pleat/ops/elementwise/select.h"

#include <cmath>
#include <limits>

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("where chooses, broadcasts and promotes") {
  const Tensor c = tensor({true, false});
  CHECK(where(c, tensor({1, 2}), tensor({3, 4})).to_vector<int>() == std::vector<int>{1, 4});
  const Tensor table = where(c, tensor({{1}, {2}}), scalar(0.5));
  CHECK(table.dtype() == float32);
  CHECK(table.to_vector() == std::vector<float>{1, 0.5, 2, 0.5});
  CHECK(where(c, tensor({1, 2}, uint8), tensor({3, 4}, int32)).dtype() == int32);
  CHECK(where(c, ones({2}, {.dtype = float16}), 2.0).dtype() == float16);
  CHECK(where(c, 2.0, arange(2)).dtype() == float32);
  CHECK(where(c, 2, arange(2)).dtype() == int64);
  CHECK(where(c, 1.0, 0.0).dtype() == float32);
  CHECK(where(c, 1, 0).to_vector<int>() == std::vector<int>{1, 0});
  CHECK(where(c, true, false).dtype() == boolean);
  CHECK(where(scalar(true), c, !c).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(where(zeros({0, 2}, {.dtype = boolean}), tensor({1, 2}), 0).shape() == Shape{0, 2});
}

TEST_CASE("where copies half types bit by bit") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = tensor({65504.0f, -0.0f, nan}, float16);
  const Tensor y = where(scalar(true), x, 0);
  CHECK(y.to_vector()[0] == 65504);
  CHECK(std::signbit(y.to_vector()[1]));
  CHECK(std::isnan(y.to_vector()[2]));
}

TEST_CASE("where keeps channels_last") {
  const Tensor x = rand({2, 3, 4, 4}).to(MemoryFormat::channels_last);
  const Tensor y = where(x > 0.5, x, 0);
  CHECK(y.memory_format() == MemoryFormat::channels_last);
  CHECK(array_equal(y, where(x.contiguous() > 0.5, x.contiguous(), 0)));
}

TEST_CASE("masked_fill broadcasts both ways and keeps the type") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, int32);
  const Tensor y = masked_fill(x, tensor({true, false, true}), -1);
  CHECK(y.dtype() == int32);
  CHECK(y.to_vector<int>() == std::vector<int>{-1, 2, -1, -1, 5, -1});
  CHECK(masked_fill(tensor({1.0, 2.0}), tensor({{true, false}, {false, true}}), 0).shape() == Shape{2, 2});
  masked_fill_(x, tensor({{true}, {false}}), 0);
  CHECK(x.to_vector<int>() == std::vector<int>{0, 0, 0, 4, 5, 6});
  const Tensor z = rand({4, 3});
  const Tensor columns = permute(z, {1, 0});
  masked_fill_(columns, columns >= 0, -std::numeric_limits<float>::infinity());
  CHECK(array_equal(isinf(z), ones({4, 3}, {.dtype = boolean})));
}

TEST_CASE("masked_fill_ is recorded") {
  const Tensor x = ones({3}).set_requires_grad();
  const Tensor y = x * 2;
  masked_fill_(y, tensor({false, true, false}), 5);
  sum(y * y).backward();
  CHECK(y.to_vector() == std::vector<float>{2, 5, 2});
  CHECK(x.grad().to_vector() == std::vector<float>{8, 0, 8});
  CHECK_THROWS_AS(masked_fill_(x, tensor({true}), 0), AutogradError);
}
