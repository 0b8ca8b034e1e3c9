#include "pleat/ops/shape/rearrange.h"

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/compare.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {
using Numbers = std::vector<int>;
Numbers numbers(const Tensor& x) { return x.to_vector<int>(); }
Tensor sample() { return tensor({{1, 2, 3}, {4, 5, 6}}); }
}  // namespace

TEST_CASE("flip reverses dimensions", "[rearrange]") {
  const Tensor x = sample();
  CHECK(numbers(flip(x, 0)) == Numbers{4, 5, 6, 1, 2, 3});
  CHECK(numbers(flip(x, -1)) == Numbers{3, 2, 1, 6, 5, 4});
  CHECK(numbers(flip(x, {0, 1})) == Numbers{6, 5, 4, 3, 2, 1});
  CHECK(numbers(flip(transpose(x, 0, 1), 0)) == Numbers{3, 6, 2, 5, 1, 4});
  CHECK(flip(zeros({2, 0}), 1).shape() == Shape{2, 0});
  const Tensor last = zeros({1, 2, 3, 3}, {.format = MemoryFormat::channels_last});
  CHECK(flip(last, {2, 3}).memory_format() == MemoryFormat::channels_last);
  CHECK_THROWS_WITH(flip(x, {1, -1}), "flip: dimension 1 is named twice in [1, -1]");
  CHECK_THROWS_AS(flip(x, 2), IndexError);
}

TEST_CASE("roll moves elements around", "[rearrange]") {
  const Tensor x = sample();
  CHECK(numbers(roll(x, 1, 1)) == Numbers{3, 1, 2, 6, 4, 5});
  CHECK(numbers(roll(x, -4, -1)) == Numbers{2, 3, 1, 5, 6, 4});
  CHECK(numbers(roll(x, {1, 2}, {0, 1})) == Numbers{5, 6, 4, 2, 3, 1});
  CHECK(numbers(roll(x, 2)) == Numbers{5, 6, 1, 2, 3, 4});
  CHECK(numbers(roll(x, {1, 1}, {1, 1})) == Numbers{2, 3, 1, 5, 6, 4});
  CHECK(roll(zeros({0, 2}), 1, 0).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(roll(x, {1, 2}), "roll: without dimensions there must be one shift, got [1, 2]");
  CHECK_THROWS_WITH(roll(x, 1, {0, 1}), Contains("needs a shift for each dimension"));
  CHECK_THROWS_AS(roll(x, 1, 2), IndexError);
  CHECK_THROWS_AS(roll(scalar(1), 1, 0), ShapeError);
}

TEST_CASE("repeat, tile and repeat_interleave", "[rearrange]") {
  const Tensor x = sample();
  CHECK(numbers(repeat(x, {1, 2})) == Numbers{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(numbers(repeat(tensor({1, 2}), {2, 1, 2})) == Numbers{1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(repeat(tensor({1, 2}), {2, 1, 2}).shape() == Shape{2, 1, 4});
  CHECK(repeat(x, {0, 2}).shape() == Shape{0, 6});
  CHECK(numbers(repeat(scalar(7), {3})) == Numbers{7, 7, 7});
  CHECK(numbers(repeat(transpose(x, 0, 1), {1, 2})) == Numbers{1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6});
  CHECK(numbers(tile(x, {2})) == Numbers{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(tile(x, {2, 1, 1}).shape() == Shape{2, 2, 3});
  CHECK(numbers(repeat_interleave(x, 2, 0)) == Numbers{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(numbers(repeat_interleave(x, 2, -1)) == Numbers{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  CHECK(repeat_interleave(x, 0, 1).shape() == Shape{2, 0});
  CHECK_THROWS_WITH(repeat(x, {2}), "repeat: needs at least 2 numbers for [2, 3], got [2]");
  CHECK_THROWS_AS(repeat(x, {1, -1}), ShapeError);
  CHECK_THROWS_AS(repeat(x, {1, int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_AS(repeat_interleave(x, -1, 0), ValueError);
  CHECK_THROWS_AS(repeat_interleave(x, 1, 2), IndexError);
}

TEST_CASE("shuffles of pixels and channels are PyTorch's", "[rearrange]") {
  for (const char* op : {"pixel_shuffle", "pixel_unshuffle", "channel_shuffle"})
    for (const test::Json& c : test::fixture_cases("images", op)) {
      CAPTURE(c.at("name").get<std::string>());
      const Tensor x = test::tensors_from(c.at("inputs")).at("x").set_requires_grad();
      const int64_t n = c.at("options").front().get<int64_t>();
      const Tensor y = op == std::string("pixel_shuffle")     ? pixel_shuffle(x, n)
                       : op == std::string("pixel_unshuffle") ? pixel_unshuffle(x, n)
                                                              : channel_shuffle(x, n);
      CHECK(array_equal(y, test::tensor_from(c.at("outputs").at("y"))));
      y.backward(test::tensor_from(c.at("grad_output")));
      CHECK(array_equal(x.grad(), test::tensor_from(c.at("grads").at("x"))));
    }
  const Tensor image = ones({2, 8, 3, 5}).to(MemoryFormat::channels_last);
  CHECK(pixel_shuffle(image, 2).is_contiguous(MemoryFormat::channels_last));
  CHECK(pixel_unshuffle(pixel_shuffle(image, 2), 2).is_contiguous(MemoryFormat::channels_last));
  CHECK(channel_shuffle(image, 4).is_contiguous(MemoryFormat::channels_last));
}

TEST_CASE("a tensor may be repeated no time", "[rearrange]") {
  const Tensor x = ones({2}).set_requires_grad();
  sum(repeat(x, {0})).backward();
  CHECK(x.grad().to_vector() == std::vector<float>{0, 0});
}
