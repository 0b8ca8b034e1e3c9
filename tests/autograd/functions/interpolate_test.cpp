#include "pleat/autograd/functions/interpolate.h"

#include <cmath>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/layouts.h"
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

}  // namespace

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
