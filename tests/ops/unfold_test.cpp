#include "pleat/ops/unfold/unfold.h"

#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/matmul/matmul.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

struct WindowCase {
  Shape image;
  UnfoldOptions options;
};

std::vector<WindowCase> window_cases() {
  return {
      {{2, 3, 7}, {.kernel_size = 3, .stride = 2, .padding = 1}},
      {{2, 2, 5, 6}, {.kernel_size = {3, 2}, .padding = {1, 0}}},
      {{1, 2, 7, 5}, {.kernel_size = 2, .stride = 3, .dilation = 2}},
      {{1, 2, 5, 5}, {.kernel_size = 3, .padding = {{0, 2}, {2, 1}}}},
      {{1, 2, 4, 3, 4}, {.kernel_size = {2, 3, 2}, .stride = {1, 2, 1}, .padding = {0, 1, 1}}},
      {{0, 2, 5, 5}, {.kernel_size = 3}},
      // More than a tile of shared memory in each dimension; windows that lie far apart; many taps.
      {{3, 5, 150}, {.kernel_size = 5, .stride = 3, .padding = 2}},
      {{5, 9, 40, 33}, {.kernel_size = 3, .stride = {2, 1}, .padding = 1}},
      {{2, 8, 70, 90}, {.kernel_size = 2, .padding = 40, .dilation = 60}},
      {{1, 2, 60, 60}, {.kernel_size = {40, 41}, .stride = 7}},
      {{1, 1, 3000}, {.kernel_size = 1500, .stride = 499}},
      {{33, 6, 4, 4}, {.kernel_size = 3, .padding = 1}},
      {{1, 3, 40, 40}, {.kernel_size = 2, .stride = {4, 8}, .dilation = {6, 4}}},
      {{2, 4, 12, 13, 14}, {.kernel_size = 3, .stride = 2, .padding = 1}},
  };
}

Shape spatial(const Shape& image) { return {image.begin() + 2, image.end()}; }

}  // namespace

TEST_CASE("unfold lists windows, fold adds them up", "[unfold]") {
  const Tensor x = reshape(arange(9).to(float32), {1, 1, 3, 3});
  const Tensor columns = unfold(x, {.kernel_size = 2});
  CHECK(columns.shape() == Shape{1, 4, 4});
  CHECK(columns.to_vector() == std::vector<float>{0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8});
  CHECK(fold(columns, {3, 3}, {.kernel_size = 2}).to_vector() ==
        std::vector<float>{0, 2, 2, 6, 16, 10, 6, 14, 8});
}

TEST_CASE("unfold and fold give the CPU's bits on a GPU, for any strides", "[unfold][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  for (const WindowCase& c : window_cases())
    for (const DType dtype : {float64, float32, float16})
      for (const std::string& layout : test::layouts()) {
        CAPTURE(c.image, name(dtype), layout);
        const Tensor x = test::laid_out(test::numbers(c.image, dtype), layout);
        const Tensor columns = unfold(x, c.options);
        const Tensor wide = transpose(ops::copy(transpose(columns, 1, 2)), 1, 2);
        const Tensor folded = fold(wide, spatial(c.image), c.options);
        const Tensor x_there = test::laid_out(ops::to_device(x, "cuda"), layout);
        const Tensor wide_there = transpose(ops::to_device(transpose(wide, 1, 2), "cuda"), 1, 2);
        CHECK(unfold(x_there, c.options).to_vector<double>() == columns.to_vector<double>());
        CHECK(fold(wide_there, spatial(c.image), c.options).to_vector<double>() ==
              folded.to_vector<double>());
      }
}

TEST_CASE("weights times unfolded windows are a convolution", "[unfold]") {
  for (const WindowCase& c : window_cases()) {
    const auto dims = static_cast<int64_t>(c.image.size()) - 2;
    const Tensor x = randn(c.image, {.dtype = float64});
    Shape shape{4, c.image[1]};
    for (const int64_t size : c.options.kernel_size.get().expand(dims, "test", "kernel"))
      shape.push_back(size);
    const Tensor w = randn(shape, {.dtype = float64});
    const ConvOptions options{
        .stride = c.options.stride, .padding = c.options.padding, .dilation = c.options.dilation};
    const Tensor y = dims == 1   ? conv1d(x, w, options)
                     : dims == 2 ? conv2d(x, w, options)
                                 : conv3d(x, w, options);
    const auto product = matmul(flatten(w, 1), unfold(x, c.options)).to_vector<double>();
    const auto expected = y.to_vector<double>();
    REQUIRE(product.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(product[i] == Approx(expected[i]).margin(1e-10));
  }
}

TEST_CASE("bad windows are refused", "[unfold]") {
  const Tensor x = zeros({1, 2, 5, 5});
  CHECK_THROWS_WITH(unfold(x, {.kernel_size = 6}),
                    Contains("unfold: a kernel of 6 with dilation 1 reaches over 6"));
  CHECK_THROWS_WITH(unfold(x, {.kernel_size = 0}), Contains("kernel_size must be at least 1"));
  CHECK_THROWS_WITH(unfold(x, {.kernel_size = 2, .stride = 0}), Contains("stride must be at least 1"));
  CHECK_THROWS_AS(unfold(x, {.kernel_size = 2, .dilation = int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_AS(unfold(zeros({5, 5}), {.kernel_size = 2}), ShapeError);
  CHECK_THROWS_AS(unfold(arange(8).to(int64), {.kernel_size = 2}), ShapeError);
  CHECK_THROWS_WITH(fold(zeros({1, 8, 15}), {5, 5}, {.kernel_size = 2}),
                    Contains("so columns need [N, C * 4, 16], got [1, 8, 15]"));
}
