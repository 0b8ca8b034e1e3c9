#include "pleat/ops/sample/grid_sample.h"

#include <cmath>
#include <limits>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using test::Json;

namespace {

/// Places of which some are beyond the image.
Tensor uniform_grid(Generator& generator) {
  const Tensor grid = empty({2, 7, 9, 2}, {.dtype = float64});
  fill_uniform_(grid, -1.2, 1.2, generator);
  return grid.set_requires_grad();
}

}  // namespace

TEST_CASE("grid_sample gives PyTorch's values and gradients", "[grid_sample]") {
  for (const Json& c : test::fixture_cases("images", "grid_sample")) {
    CAPTURE(c.at("name").get<std::string>());
    const Json& o = c.at("options");
    const auto mode = o.at("mode").get<std::string>();
    const auto padding = o.at("padding_mode").get<std::string>();
    const GridSampleOptions options{.mode = mode == "nearest"   ? GridMode::nearest
                                            : mode == "bicubic" ? GridMode::cubic
                                                                : GridMode::linear,
                                    .padding = padding == "zeros"    ? GridPadding::zeros
                                               : padding == "border" ? GridPadding::border
                                                                     : GridPadding::reflection,
                                    .align_corners = o.at("align_corners").get<bool>()};
    auto in = test::tensors_from(c.at("inputs"));
    const Tensor x = in.at("x").set_requires_grad(), grid = in.at("grid").set_requires_grad();
    const Tensor y = grid_sample(x, grid, options);
    CHECK(test::relative_error(y, test::tensor_from(c.at("outputs").at("y"))) < 1e-13);
    const Grads d = grad({y}, {x, grid}, {test::tensor_from(c.at("grad_output"))});
    CHECK(test::relative_error(d[0], test::tensor_from(c.at("grads").at("x"))) < 1e-13);
    CHECK(test::relative_error(d[1], test::tensor_from(c.at("grads").at("grid"))) < 1e-12);
  }
}

TEST_CASE("affine_grid gives PyTorch's values and gradients", "[grid_sample]") {
  for (const Json& c : test::fixture_cases("images", "affine_grid")) {
    CAPTURE(c.at("name").get<std::string>());
    const Tensor theta = test::tensors_from(c.at("inputs")).at("theta").set_requires_grad();
    const Tensor y = affine_grid(theta, c.at("options").at("size").get<std::vector<int64_t>>(),
                                 c.at("options").at("align_corners").get<bool>());
    CHECK(test::relative_error(y, test::tensor_from(c.at("outputs").at("y"))) < 1e-13);
    y.backward(test::tensor_from(c.at("grad_output")));
    CHECK(test::relative_error(theta.grad(), test::tensor_from(c.at("grads").at("theta"))) < 1e-13);
  }
}

TEST_CASE("grid_sample: places far out are padding, NaN stays NaN", "[grid_sample]") {
  const Tensor x = ones({1, 1, 3, 3});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto at = [&](float u, const GridSampleOptions& options) {
    return grid_sample(x, from_vector(std::vector<float>{u, 0}, {1, 1, 1, 2}), options).item();
  };
  for (const float far : {1e30f, -1e30f, infinity, -infinity})
    for (const GridMode mode : {GridMode::nearest, GridMode::linear, GridMode::cubic})
      CHECK(at(far, {.mode = mode}) == 0);
  for (const float far : {1e30f, infinity}) CHECK(at(far, {.padding = GridPadding::border}) == 1);
  for (const GridMode mode : {GridMode::nearest, GridMode::linear, GridMode::cubic})
    for (const GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      CHECK(std::isnan(at(std::nanf(""), {.mode = mode, .padding = padding})));
  const Tensor image = ones({2, 4, 3, 3}).to(MemoryFormat::channels_last);
  CHECK(grid_sample(image, zeros({2, 5, 5, 2})).is_contiguous(MemoryFormat::channels_last));
  CHECK(grid_sample(ones({0, 2, 3, 3}), zeros({0, 4, 4, 2})).shape() == Shape{0, 2, 4, 4});
}

TEST_CASE("grid_sample of many channels is that of each, in either format", "[grid_sample]") {
  Generator generator(5);
  const Tensor x = randn({2, 20, 5, 6}, {.dtype = float64}, generator).set_requires_grad();
  const Tensor grid = uniform_grid(generator);
  const Tensor y = grid_sample(x, grid), few = grid_sample(slice(x, 1, 4, 7), grid);
  const Tensor dy = randn(y.shape(), {.dtype = float64}, generator);
  const Grads d = grad({y}, {x, grid}, {dy}, {.retain_graph = true});
  CHECK(y.is_contiguous());
  CHECK(d[0].is_contiguous());
  CHECK(test::relative_error(slice(y, 1, 4, 7), few) < 1e-14);
  CHECK(test::relative_error(slice(d[0], 1, 4, 7),
                             slice(grad({few}, {x}, {slice(dy, 1, 4, 7)})[0], 1, 4, 7)) < 1e-14);
  const Tensor last = x.detach().to(MemoryFormat::channels_last).set_requires_grad();
  const Tensor z = grid_sample(last, grid);
  CHECK(z.is_contiguous(MemoryFormat::channels_last));
  const Grads e = grad({z}, {last, grid}, {dy});
  CHECK(test::relative_error(z, y) < 1e-14);
  for (std::size_t i = 0; i < 2; ++i) CHECK(test::relative_error(e[i], d[i]) < 1e-13);
}

TEST_CASE("grid_sample on a GPU is that of the CPU: any taps, channels and type", "[grid_sample][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  Generator generator(7);
  for (const int64_t dims : {2, 3})
    for (const GridMode mode : {GridMode::nearest, GridMode::linear, GridMode::cubic})
      for (const int64_t channels : {1, 5, 8, 20})
        for (const DType dtype : {float64, float32, float16, bfloat16})
          for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
            if (dims == 3 && mode == GridMode::cubic) continue;
            CAPTURE(dims, static_cast<int>(mode), channels, name(dtype), static_cast<int>(format));
            const Shape image = dims == 2 ? Shape{2, channels, 5, 4} : Shape{2, channels, 3, 5, 4};
            const Shape places = dims == 2 ? Shape{2, 3, 5, 2} : Shape{2, 2, 3, 5, 3};
            const Tensor x = ops::to_format(randn(image, {}, generator).to(dtype), format);
            const Tensor grid = empty(places, {});
            fill_uniform_(grid, -1.2, 1.2, generator);
            const auto all = [&](Device device) {
              const Tensor at = ops::to_device(grid.to(dtype), device).set_requires_grad();
              const Tensor from = ops::to_device(x, device).set_requires_grad();
              const Tensor y = grid_sample(from, at, {.mode = mode});
              CHECK(y.dtype() == dtype);
              const Grads d = grad({y}, {from, at}, {y}, {.create_graph = true});
              const Grads second = grad({d[0]}, {from, at}, {from.detach()});
              return std::vector<Tensor>{y, d[0], d[1], second[0], second[1]};
            };
            const std::vector<Tensor> there = all("cuda"), here = all("cpu");
            const double tolerance = dtype == float64   ? 1e-14
                                     : dtype == float32 ? 1e-5
                                     : dtype == float16 ? 5e-3
                                                        : 4e-2;
            for (std::size_t i = 0; i < here.size(); ++i)
              CHECK(test::relative_error(there[i], here[i]) < tolerance);
          }
}
