#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/interpolate/interpolate.h"
#include "pleat/ops/pool/max_pool_functors.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using test::laid_out;
using test::numbers;
using test::relative_error;

TEST_CASE(
    "pools and interpolation of many channels, of tiles and of every alignment agree with the reference",
    "[pool][interpolate]") {
  using Function = std::function<Tensor(const Tensor&, const std::string&)>;
  const std::vector<std::pair<std::string, Function>> functions{
      {"max_pool",
       [](const Tensor& x, const std::string& by) {
         return max_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1, .implementation = by});
       }},
      {"adaptive_max_pool",
       [](const Tensor& x, const std::string& by) {
         return adaptive_max_pool(x, {.output_size = 3, .implementation = by});
       }},
      {"avg_pool",
       [](const Tensor& x, const std::string& by) {
         return avg_pool(x, {.kernel_size = 2, .implementation = by});
       }},
      {"avg_pool of overlapping windows",
       [](const Tensor& x, const std::string& by) {
         return avg_pool(x, {.kernel_size = 3, .stride = 1, .padding = 1, .implementation = by});
       }},
      {"avg_pool of dilated windows, of whose gradients later columns are made of earlier elements",
       [](const Tensor& x, const std::string& by) {
         return avg_pool(x,
                         {.kernel_size = 2, .stride = 1, .padding = 1, .dilation = 2, .implementation = by});
       }},
      {"adaptive_avg_pool",
       [](const Tensor& x, const std::string& by) {
         return adaptive_avg_pool(x, {.output_size = 3, .implementation = by});
       }},
      {"adaptive_avg_pool to 1",
       [](const Tensor& x, const std::string& by) { return adaptive_avg_pool(x, {.implementation = by}); }},
      {"nearest",
       [](const Tensor& x, const std::string& by) {
         return interpolate(x, {.scale_factor = 1.5, .implementation = by});
       }},
      {"linear",
       [](const Tensor& x, const std::string& by) {
         return interpolate(x, {.scale_factor = 2, .mode = Interpolation::linear, .implementation = by});
       }},
      {"linear by a quarter",
       [](const Tensor& x, const std::string& by) {
         return interpolate(x, {.size = std::max<int64_t>(x.size(-1) / 4, 1),
                                .mode = Interpolation::linear,
                                .implementation = by});
       }},
      {"cubic", [](const Tensor& x, const std::string& by) {
         return interpolate(x, {.scale_factor = 2, .mode = Interpolation::cubic, .implementation = by});
       }}};
  const auto check = [&](const Tensor& x) {
    const DType dtype = x.dtype();
    const double tolerance = dtype == float32 ? 1e-6 : dtype == float16 ? 1e-3 : 8e-3;
    const Tensor wide = ops::cast(x, float64);
    x.set_requires_grad();
    wide.set_requires_grad();
    for (const auto& [title, function] : functions) {
      CAPTURE(title);
      const Tensor y = function(x, "native"), right = function(wide, "reference");
      CHECK(relative_error(ops::cast(y, float64), right) < tolerance);
      const Tensor dy = numbers(y.shape(), dtype, 7);
      CHECK(relative_error(ops::cast(grad({y}, {x}, {dy})[0], float64),
                           grad({right}, {wide}, {ops::cast(dy, float64)})[0]) < tolerance);
    }
  };
  for (const Shape& shape : {Shape{2, 16, 9, 30}, Shape{1, 20, 4, 280}, Shape{3, 12, 7, 14},
                             Shape{2, 8, 3, 6, 10}, Shape{4, 4, 600}, Shape{2, 10, 8, 8}})
    for (const std::string& layout : test::layouts())
      for (const DType dtype : {float32, float16, bfloat16}) {
        CAPTURE(shape, layout, name(dtype));
        check(laid_out(numbers(shape, dtype), layout).detach());
      }
  for (const DType dtype : {float32, float16}) {  // whose elements lie at no multiple of a vector's
    CAPTURE(name(dtype));
    check(narrow(numbers({3, 4, 8, 21}, dtype), 3, 1, 20).detach());
    check(narrow(numbers({3, 4, 8, 28}, dtype), 3, 4, 24).detach());
    check(narrow(to_format(numbers({3, 13, 8, 8}, dtype), MemoryFormat::channels_last), 1, 1, 12).detach());
  }
}

TEST_CASE("windows of a pool as kernels count them", "[pool]") {
  const auto check = [](const ops::WindowRule& rule, const auto& window) {
    std::vector<std::pair<int64_t, int64_t>> over(static_cast<std::size_t>(rule.inputs), {rule.outputs, -1});
    for (int64_t o = 0; o < rule.outputs; ++o) {
      CHECK(window.begin(static_cast<uint32_t>(o)) == rule.begin(o));
      CHECK(window.end(static_cast<uint32_t>(o)) == rule.end(o));
      for (int64_t i = rule.begin(o); i < rule.end(o); i += rule.step) {
        auto& [first, last] = over[static_cast<std::size_t>(i)];
        first = std::min(first, o);
        last = std::max(last, o);
      }
    }
    for (int64_t i = 0; i < rule.inputs; ++i) {
      const auto [first, last] = over[static_cast<std::size_t>(i)];
      CHECK(window.over(static_cast<uint32_t>(i)).first >= 0);
      CHECK(window.over(static_cast<uint32_t>(i)).first <= first);
      CHECK(window.over(static_cast<uint32_t>(i)).last >= last);
      CHECK(window.over(static_cast<uint32_t>(i)).last < rule.outputs);
    }
  };
  std::vector<ops::WindowRule> rules;
  for (const int64_t inputs : {1, 2, 7, 16})
    for (const int64_t kernel : {1, 2, 3})
      for (const int64_t step : {1, 2, 3})
        for (const int64_t stride : {1, 2, 5}) {
          const int64_t padding = (step * (kernel - 1) + 1) / 2;
          const int64_t rest = inputs + 2 * padding - step * (kernel - 1) - 1;
          if (rest >= 0) rules.push_back({inputs, rest / stride + 1, kernel, stride, padding, step, false});
        }
  for (const int64_t inputs : {1, 5, 12})
    for (const int64_t outputs : {1, 3, 5, 7, 24})
      rules.push_back({.inputs = inputs, .outputs = outputs, .adaptive = true});
  for (const ops::WindowRule& rule : rules) {
    CAPTURE(rule.inputs, rule.outputs, rule.kernel, rule.stride, rule.padding, rule.step, rule.adaptive);
    CHECK(ops::Window<uint32_t>::fits_small(rule));
    check(rule, ops::Window<uint32_t>(rule));
    check(rule, ops::Window<int64_t>(rule));
  }
  CHECK_FALSE(ops::Window<uint32_t>::fits_small({.inputs = 1 << 16, .outputs = 7, .adaptive = true}));
  CHECK_FALSE(ops::Window<uint32_t>::fits_small({.inputs = int64_t{1} << 31, .outputs = 7, .kernel = 3}));
}

TEST_CASE("images in parts that are counted by 32 bits", "[pool]") {
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  const auto parts = [](int64_t images, int64_t reach) {
    Parts all;
    ops::for_image_parts(images, reach,
                         [&](int64_t first, int64_t count) { all.emplace_back(first, count); });
    return all;
  };
  CHECK(parts(5, 1000) == Parts{{0, 5}});
  CHECK(parts(5, int64_t{1} << 30) == Parts{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}});
  CHECK(parts(5, (int64_t{1} << 30) - 1) == Parts{{0, 2}, {2, 2}, {4, 1}});
  CHECK(parts(2, int64_t{1} << 40) == Parts{{0, 1}, {1, 1}});
  CHECK(parts(0, 7).empty());
}
