#include "pleat/ops/shape/pad.h"

#include <array>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {
using Numbers = std::vector<int>;
Numbers numbers(const Tensor& x) { return x.to_vector<int>(); }

PadMode mode_of(const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  return name == "replicate" ? PadMode::replicate : PadMode::circular;
}
}  // namespace

TEST_CASE("pad and its gradient agree with PyTorch to the bit", "[pad]") {
  for (const test::Json& entry : test::fixture_cases("layers", "pad")) {
    CAPTURE(entry.at("name").get<std::string>());
    const test::Json& options = entry.at("options");
    const auto widths = options.at("pad").get<std::vector<int64_t>>();
    const auto mode = mode_of(options.at("mode"));
    const double value = options.at("value").is_null() ? 0 : options.at("value").get<double>();
    const Tensor x = test::tensor_from(entry.at("inputs").at("x"));
    const Tensor y = test::tensor_from(entry.at("outputs").at("y"));
    const Tensor dy = test::tensor_from(entry.at("grad_output"));
    const Tensor dx = test::tensor_from(entry.at("grads").at("x"));
    x.set_requires_grad();
    const Tensor padded = pad(x, widths, {.mode = mode, .value = value});
    CHECK(padded.to_vector<double>() == y.to_vector<double>());
    const auto got = grad({padded}, {x}, {dy})[0].to_vector<double>();
    const auto wanted = dx.to_vector<double>();
    REQUIRE(got.size() == wanted.size());
    // Sums of a few numbers, perhaps in another order.
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(wanted[i]).epsilon(1e-14).margin(1e-14));
    if (x.rank() < 3) continue;
    const Tensor last = ops::to_format(x.detach(), MemoryFormat::channels_last).set_requires_grad();
    const Tensor wide = pad(last, widths, {.mode = mode, .value = value});
    CHECK(wide.is_contiguous(MemoryFormat::channels_last));
    CHECK(wide.to_vector<double>() == y.to_vector<double>());
    const Tensor back = grad({wide}, {last}, {ops::to_format(dy, MemoryFormat::channels_last)})[0];
    CHECK(back.is_contiguous(MemoryFormat::channels_last));
    CHECK(back.to_vector<double>() == got);
  }
}

TEST_CASE("pad modes read what they say", "[pad]") {
  using enum PadMode;
  const Tensor x = tensor({1, 2, 3});
  CHECK(numbers(pad(x, {1, 2})) == Numbers{0, 1, 2, 3, 0, 0});
  CHECK(numbers(pad(x, {2, 1}, {.mode = reflect})) == Numbers{3, 2, 1, 2, 3, 2});
  CHECK(numbers(pad(x, {2, 1}, {.mode = replicate})) == Numbers{1, 1, 1, 2, 3, 3});
  CHECK(numbers(pad(x, {2, 3}, {.mode = circular})) == Numbers{2, 3, 1, 2, 3, 1, 2, 3});
  for (const auto mode : {constant, reflect, replicate, circular}) {
    CHECK(numbers(pad(x, {-1, -1}, {.mode = mode})) == Numbers{2});
    CHECK(numbers(pad(x, {-1, -2}, {.mode = mode})).empty());
    CHECK(numbers(pad(x, {}, {.mode = mode})) == Numbers{1, 2, 3});
    CHECK(pad(zeros({0, 3}), {1, 1}, {.mode = mode}).shape() == Shape{0, 5});
  }
  CHECK(numbers(pad(x, {-2, 1}, {.mode = reflect})) == Numbers{3, 2});
  CHECK(numbers(pad(x, {-4, 3}, {.value = 9})) == Numbers{9, 9});
  CHECK(numbers(pad(transpose(tensor({{1, 2}, {3, 4}}), 0, 1), {1, 0}, {.mode = replicate})) ==
        Numbers{1, 1, 3, 2, 2, 4});
  CHECK(pad(zeros({0}), {1, 1}, {.value = 2}).to_vector() == std::vector<float>{2, 2});
  for (const DType dtype : {boolean, uint8, int32, float16, bfloat16})
    CHECK(numbers(pad(ops::cast(tensor({0, 1}), dtype), {0, 1}, {.mode = replicate})) == Numbers{0, 1, 1});
}

// What PyTorch 1.13 gives for [0, 1, 2, 3]. Where less is left than is added it reads memory that nobody
// wrote; then there is an error here.
TEST_CASE("negative and positive widths together", "[pad]") {
  using enum PadMode;
  const Tensor x = tensor({0, 1, 2, 3});
  CHECK(numbers(pad(x, {2, -1}, {.mode = circular})) == Numbers{1, 2, 0, 1, 2});
  CHECK(numbers(pad(x, {-1, 3}, {.mode = circular})) == Numbers{1, 2, 3, 1, 2, 3});
  CHECK(numbers(pad(x, {-3, 1}, {.mode = circular})) == Numbers{3, 3});
  CHECK(numbers(pad(x, {-1, -1}, {.mode = circular})) == Numbers{1, 2});
  CHECK_THROWS_WITH(pad(x, {-2, 3}, {.mode = circular}),
                    Contains("circular can add at most 2 to dimension 0 of [4], got widths -2 and 3"));
  CHECK_THROWS_AS(pad(x, {-4, 4}, {.mode = circular}), ShapeError);
  CHECK(numbers(pad(x, {-2, 3}, {.mode = reflect})) == Numbers{2, 3, 2, 1, 0});
  CHECK(numbers(pad(x, {3, -2}, {.mode = reflect})) == Numbers{3, 2, 1, 0, 1});
  CHECK(numbers(pad(x, {-3, 2}, {.mode = reflect})) == Numbers{3, 2, 1});
  CHECK(numbers(pad(x, {-4, 2}, {.mode = reflect})) == Numbers{2, 1});
  CHECK(numbers(pad(x, {-3, 2}, {.mode = replicate})) == Numbers{3, 3, 3});
  CHECK(numbers(pad(x, {-5, 3}, {.mode = replicate})) == Numbers{3, 3});
  for (const auto mode : {constant, reflect, replicate, circular}) {
    CAPTURE(static_cast<int>(mode));
    const auto padded = [&](const std::vector<Tensor>& t) {
      const Tensor y = pad(t[0], {-1, 2, 2, -1}, {.mode = mode});
      return y * y;
    };
    const Tensor images = randn({1, 2, 3, 4}, {.dtype = float64});
    CHECK(gradcheck(padded, {images}));
    CHECK(gradgradcheck(padded, {images}));
    const Tensor last = images.to(MemoryFormat::channels_last);
    const Tensor y = pad(last, {-1, 2, 2, -1}, {.mode = mode});
    CHECK(y.is_contiguous(MemoryFormat::channels_last));
    CHECK(y.to_vector<double>() == pad(images, {-1, 2, 2, -1}, {.mode = mode}).to_vector<double>());
  }
}

TEST_CASE("padding on a GPU gives the CPU's bits", "[pad][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  using enum PadMode;
  struct Case {
    Shape shape;
    std::vector<int64_t> widths;
  };
  const std::vector<Case> cases{
      {{2, 3, 5, 4}, {2, 3, 1, 4}},          {{2, 3, 5, 4}, {-1, 3, 2, -2}}, {{2, 3, 5, 4}, {3, -1, -2, 2}},
      {{1, 2, 4, 4, 5}, {1, 2, 3, 0, 2, 3}}, {{3, 4}, {3, 3, 2, 1}},         {{2, 1, 3}, {2, 2}},
      {{5, 8, 3, 4}, {2, 1, 1, 2}},          {{3, 12, 4}, {1, -1}},          {{0, 3, 4}, {1, 2}}};
  for (const Case& c : cases)
    for (const auto mode : {constant, reflect, replicate, circular})
      for (const DType dtype : {float64, float32, float16})
        for (const std::string& layout : test::layouts()) {
          CAPTURE(c.shape, c.widths, static_cast<int>(mode), name(dtype), layout);
          const auto padded = [&](const Tensor& x) {
            x.set_requires_grad();
            const Tensor y = pad(x, c.widths, {.mode = mode});
            const Tensor dy = test::laid_out(test::numbers(y.shape(), dtype, 2), layout);
            y.backward(test::laid_out(ops::to_device(dy, x.device()), layout));
            return std::array{y, x.grad()};
          };
          const Tensor x = test::laid_out(test::numbers(c.shape, dtype), layout);
          const auto here = padded(x), there = padded(test::laid_out(ops::to_device(x, "cuda"), layout));
          for (std::size_t i = 0; i < 2; ++i) {
            CHECK(there[i].strides() == here[i].strides());
            CHECK(there[i].to_vector<double>() == here[i].to_vector<double>());
          }
        }
}

TEST_CASE("padding by a constant on a GPU: vectors, many images, what is cut and added at once",
          "[pad][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  struct Case {
    Shape shape;
    std::vector<int64_t> widths;
  };
  const std::vector<Case> cases{{{1, 2, 1}, {-1, 1}},
                                {{2, 3, 1, 4}, {0, 0, 1, -1}},
                                {{19, 5, 6, 8}, {4, 8}},
                                {{3, 17, 4, 8}, {2, 2, 1, 0}},
                                {{2, 8, 5, 3}, {1, 1, 2, 2}},
                                {{2, 8, 5, 3}, {0, 0, 0, 0, 4, -4}},
                                {{41}, {3, 8}},
                                {{0, 3}, {1, 1, 2, 0}},
                                {{4, 6, 8}, {-2, -4}},
                                {{2, 2, 2, 2, 2, 2}, {1, 0, 0, 1, 1, 1, 2, 0, 0, 2, 1, 1}}};
  for (const Case& c : cases)
    for (const DType dtype : {boolean, uint8, int64, float16, float32, float64})
      for (const std::string& layout : test::layouts()) {
        CAPTURE(c.shape, c.widths, name(dtype), layout);
        const Tensor x = test::laid_out(ops::cast(test::numbers(c.shape, float32), dtype), layout);
        const Tensor there = test::laid_out(ops::to_device(x, "cuda"), layout);
        const PadOptions options{.value = 1};
        const Tensor y = pad(x, c.widths, options), z = pad(there, c.widths, options);
        CHECK(z.strides() == y.strides());
        CHECK(z.to_vector<double>() == y.to_vector<double>());
      }
}

TEST_CASE("pad names widths that do not fit", "[pad]") {
  using enum PadMode;
  const Tensor x = ones({2, 3});
  CHECK_THROWS_WITH(pad(x, {1}),
                    Contains("needs a pair of widths for each of at most 2 dimensions of [2, 3], got [1]"));
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1, 1, 1}), ShapeError);
  CHECK_THROWS_WITH(pad(x, {-2, -2}), "pad: widths -2 and -2 leave nothing of dimension 1 of [2, 3]");
  CHECK_THROWS_WITH(pad(x, {3, 0}, {.mode = reflect}),
                    "pad: reflect can add at most 2 to dimension 1 of [2, 3], got widths 3 and 0");
  CHECK_THROWS_WITH(pad(x, {0, 4}, {.mode = circular}), Contains("circular can add at most 3"));
  CHECK_THROWS_WITH(pad(zeros({0}), {0, 1}, {.mode = replicate}), Contains("replicate can add at most 0"));
  CHECK_THROWS_AS(pad(x, {int64_t{1} << 62, int64_t{1} << 62}), ShapeError);
}

TEST_CASE("padding of nothing is differentiable", "[pad]") {
  using enum PadMode;
  for (const auto mode : {constant, reflect, replicate, circular}) {
    const Tensor x = zeros({0, 3}).set_requires_grad();
    sum(pad(x, {1, 1}, {.mode = mode})).backward();
    CHECK(x.grad().shape() == Shape{0, 3});
  }
}
