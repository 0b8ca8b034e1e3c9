#include "pleat/ops/interpolate/interpolate.h"

#include <array>
#include <cmath>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/index/index.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::relative_error;

namespace {

InterpolateOptions options_of(const test::Json& json) {
  InterpolateOptions options;
  if (!json["size"].is_null()) options.size = json["size"].get<std::vector<int64_t>>();
  if (!json["scale_factor"].is_null()) options.scale_factor = json["scale_factor"].get<std::vector<double>>();
  const auto mode = json["mode"].get<std::string>();
  using enum Interpolation;
  options.mode = mode == "nearest"         ? nearest
                 : mode == "nearest-exact" ? nearest_exact
                 : mode == "bicubic"       ? cubic
                 : mode == "area"          ? area
                                           : linear;
  if (json.contains("antialias")) options.antialias = json["antialias"].get<bool>();
  if (!json["align_corners"].is_null()) options.align_corners = json["align_corners"].get<bool>();
  return options;
}

/// The elements of a line of `n` that the result is made of.
std::vector<int64_t> elements_of(int64_t n, const InterpolateOptions& options) {
  return interpolate(reshape(arange(n, {.dtype = float64}), {1, 1, n}), options).to_vector<int64_t>();
}

/// Those that the formula names where an element of the result is n / d of the input.
std::vector<int64_t> elements_by(int64_t input, int64_t output, Interpolation mode, int64_t n, int64_t d) {
  std::vector<int64_t> result;
  for (int64_t o = 0; o < output; ++o) {
    const int64_t half = 2 * o + (mode == Interpolation::nearest_exact ? 1 : 0);
    result.push_back(std::min(half * n / (2 * d), input - 1));
  }
  return result;
}

constexpr std::array nearest_modes{Interpolation::nearest, Interpolation::nearest_exact};

}  // namespace

TEST_CASE("interpolate: nearest takes the element of exact arithmetic, for all sizes up to 256",
          "[interpolate]") {
  CHECK(elements_of(30, {.size = 22})[11] == 15);
  for (const Interpolation mode : nearest_modes)
    for (int64_t input = 1; input <= 256; ++input)
      for (int64_t output = 1; output <= 256; ++output)
        if (elements_of(input, {.size = output, .mode = mode}) !=
            elements_by(input, output, mode, input, output))
          FAIL_CHECK("from " << input << " to " << output);
}

TEST_CASE("interpolate: nearest by a factor takes the element of the fraction that was written",
          "[interpolate]") {
  for (const Interpolation mode : nearest_modes)
    for (const int64_t d : {1, 2, 3, 7, 10, 100})
      for (int64_t n = 1; n <= 120; ++n)
        for (const int64_t input : {3, 97}) {
          const double factor = static_cast<double>(n) / static_cast<double>(d);
          const auto output = static_cast<int64_t>(std::floor(static_cast<double>(input) * factor));
          if (output == 0) continue;
          if (elements_of(input, {.scale_factor = factor, .mode = mode}) !=
              elements_by(input, output, mode, d, n))
            FAIL_CHECK(input << " by " << n << " / " << d);
        }
  // A factor that is no short fraction, and one that is hardly any.
  CHECK(elements_of(100, {.scale_factor = std::sqrt(2.0)})[99] == 70);
  for (const auto& [written, exact] : {std::pair(0.1F, 0.1), {1.1F, 1.1}, {1.0F / 3, 1.0 / 3}})
    CHECK(elements_of(300, {.scale_factor = double{written}}) == elements_of(300, {.scale_factor = exact}));
  CHECK(elements_of(100, {.scale_factor = 0.01000000000000001}) == std::vector<int64_t>{0});
  CHECK(elements_of(3, {.scale_factor = 1e5 / 3}).size() == 100'000);
}

TEST_CASE("interpolate: nearest of two and three dimensions, and its gradient, by the same elements",
          "[interpolate]") {
  for (const auto& [shape, size] :
       {std::pair{Shape{1, 2, 30, 49}, Shape{22, 30}}, std::pair{Shape{1, 2, 2, 30, 103}, Shape{3, 22, 7}}})
    for (const Interpolation mode : nearest_modes)
      for (const std::string implementation : {"native", "reference"}) {
        const Tensor x = test::numbers(shape, float64);
        x.set_requires_grad();
        Tensor wanted = x;
        for (std::size_t d = 0; d < size.size(); ++d) {
          const int64_t input = shape[d + 2];
          wanted = index_select(wanted, static_cast<int64_t>(d) + 2,
                                from_vector(elements_by(input, size[d], mode, input, size[d]), {size[d]}));
        }
        const Tensor y = interpolate(x, {.size = size, .mode = mode, .implementation = implementation});
        CHECK(y.to_vector<double>() == wanted.to_vector<double>());
        const Tensor dy = test::numbers(y.shape(), float64, 3);
        CHECK(relative_error(grad({y}, {x}, {dy})[0], grad({wanted}, {x}, {dy})[0]) < 1e-15);
      }
}

TEST_CASE("interpolate: a point that lies on an element takes nothing of its neighbours", "[interpolate]") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const bool cubic : {false, true}) {
    const Interpolation mode = cubic ? Interpolation::cubic : Interpolation::linear;
    for (const auto& [input, output] :
         {std::pair<int64_t, int64_t>{49, 147}, {103, 721}, {98, 14}, {147, 49}})
      for (const int64_t at : {int64_t{1}, input / 2, input - 2}) {
        CAPTURE(cubic, input, output, at);
        const Tensor x = zeros({1, 1, input}, {.dtype = float64});
        ops::fill(x.as_strided({1}, {1}, at), inf);
        const std::vector<double> aligned =
            interpolate(x, {.size = 3 * (input - 1) + 1, .mode = mode, .align_corners = true})
                .to_vector<double>();
        for (int64_t i = 0; i < input; ++i)
          CHECK(aligned[static_cast<std::size_t>(3 * i)] == (i == at ? inf : 0));
        // Centres coincide where the quotient of the sizes is odd.
        const std::vector<double> y = interpolate(x, {.size = output, .mode = mode}).to_vector<double>();
        for (int64_t o = 0; o < output; ++o) {
          const int64_t d = 2 * output, place = (2 * o + 1) * input - output;
          if (place % d == 0) CHECK(y[static_cast<std::size_t>(o)] == (place / d == at ? inf : 0));
        }
      }
  }
}

TEST_CASE("interpolate: PyTorch's results and gradients", "[interpolate]") {
  std::vector<test::Json> cases = test::fixture_cases("layers", "interpolate");
  for (const test::Json& json : test::fixture_cases("images", "interpolate")) cases.push_back(json);
  for (const test::Json& json : cases)
    for (const std::string& layout : test::layouts())
      for (const std::string implementation : {"native", "reference"}) {
        CAPTURE(json["name"].get<std::string>(), layout, implementation);
        const Tensor x = test::laid_out(test::tensors_from(json["inputs"])["x"], layout);
        x.set_requires_grad();
        InterpolateOptions options = options_of(json["options"]);
        options.implementation = implementation;
        const Tensor y = interpolate(x, options);
        CHECK(relative_error(y, test::tensors_from(json["outputs"])["y"]) < 1e-14);
        CHECK(y.is_contiguous(x.memory_format()));
        const Tensor dx = grad({y}, {x}, {test::tensor_from(json["grad_output"])})[0];
        CHECK(relative_error(dx, test::tensors_from(json["grads"])["x"]) < 1e-14);
        CHECK(dx.is_contiguous(x.memory_format()));
      }
}

TEST_CASE("interpolate: antialias leaves out what lies beyond the edges, as Pillow does", "[interpolate]") {
  const Tensor x = reshape(arange(1, 17, {.dtype = float64}), {1, 1, 4, 4});
  const auto smooth = [&](InterpolateOptions options) {
    options.mode = Interpolation::linear;
    options.antialias = true;
    return interpolate(x, options);
  };
  // Pillow 13's BILINEAR, and onnx 1.23's Resize with exclude_outside = 1. Without, it has 2.36 and 2.875
  // here.
  CHECK(relative_error(smooth({.size = 3}),
                       std::vector<double>{2.5, 3.7, 4.9, 7.3, 8.5, 9.7, 12.1, 13.3, 14.5}) < 1e-14);
  CHECK(relative_error(smooth({.scale_factor = 0.6}), std::vector<double>{22.0 / 7, 33.0 / 7, 66.0 / 7, 11}) <
        1e-14);
}

TEST_CASE("interpolate: bad input is refused, an empty batch is not", "[interpolate]") {
  const Tensor x = ones({2, 3, 4, 4});
  CHECK_THROWS_WITH(interpolate(x, {}),
                    Contains("interpolate: needs either size or scale_factor, got neither"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 2, .scale_factor = 2}), Contains("got both"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 2, .align_corners = true}), Contains("linear mode only"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 2, .mode = Interpolation::area, .antialias = true}),
                    Contains("antialias goes with"));
  CHECK_THROWS_WITH(interpolate(x, {.size = 0}), Contains("sizes from 1 to"));
  CHECK_THROWS_WITH(interpolate(x, {.scale_factor = 0.1}), Contains("got 0 in spatial dimension 0"));
  CHECK_THROWS_AS(interpolate(x, {.scale_factor = 1e30}), ShapeError);
  for (const double factor : {0.0, -1.0, std::nan("")})
    CHECK_THROWS_AS(interpolate(x, {.scale_factor = factor}), ValueError);
  CHECK_THROWS_WITH(interpolate(x, {.scale_factor = {2, 2, 2}}),
                    Contains("scale_factor needs 1 or 2 values, got 3"));
  CHECK_THROWS_AS(interpolate(x, {.size = {2, 2, 2}}), ShapeError);
  CHECK_THROWS_AS(interpolate(ones({3, 4}), {.size = 2}), ShapeError);
  CHECK_THROWS_AS(interpolate(zeros({1, 1, 2}, {.dtype = int64}), {.size = 4}), DTypeError);
  CHECK_THROWS_AS(interpolate(x, {.size = 2, .implementation = "magic"}), ValueError);
  const Tensor empty = zeros({0, 3, 2, 2});
  empty.set_requires_grad();
  const Tensor y = interpolate(empty, {.scale_factor = 2});
  CHECK(y.shape() == Shape{0, 3, 4, 4});
  sum(y).backward();
  CHECK(empty.grad().shape() == Shape{0, 3, 2, 2});
}
