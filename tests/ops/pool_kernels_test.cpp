#include "pleat/ops/pool/pool_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "pleat/autograd/backward.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/pool/pool.h"
#include "pleat/ops/pool/problem.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/layouts.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::laid_out;
using test::numbers;
using test::relative_error;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Geometry {
  int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
};

const std::vector<Geometry> geometries{
    {2, 2, 0, 1, false}, {3, 2, 1, 1, false}, {3, 2, 1, 1, true}, {3, 1, 1, 2, false}, {1, 1, 0, 1, false},
    {1, 3, 0, 1, true},  {4, 3, 2, 1, true},  {2, 3, 1, 2, true}, {5, 2, 2, 1, false}, {8, 4, 1, 1, true}};

struct Pooled {
  std::vector<double> values;
  std::vector<double> places;
};

/// Each window of a [N, C, H, W] input by the definition; its size is taken from the result under test.
template <class Take>
void for_windows(const Tensor& x, const Tensor& y, const Geometry& g, const Take& take) {
  const std::vector<double> a = x.to_vector<double>();
  const int64_t height = x.size(2), width = x.size(3);
  for (int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane)
    for (int64_t oh = 0; oh < y.size(2); ++oh)
      for (int64_t ow = 0; ow < y.size(3); ++ow) {
        std::vector<std::pair<int64_t, double>> window;
        for (int64_t kh = 0; kh < g.kernel; ++kh)
          for (int64_t kw = 0; kw < g.kernel; ++kw) {
            const int64_t h = oh * g.stride - g.padding + kh * g.dilation;
            const int64_t w = ow * g.stride - g.padding + kw * g.dilation;
            if (h >= 0 && h < height && w >= 0 && w < width)
              window.emplace_back(h * width + w,
                                  a[static_cast<std::size_t>((plane * height + h) * width + w)]);
          }
        take(window);
      }
}

Pooled max_reference(const Tensor& x, const Tensor& y, const Geometry& g) {
  Pooled result;
  for_windows(x, y, g, [&](const auto& window) {
    double best = -infinity;
    int64_t place = -1;
    for (const auto& [at, value] : window)
      if (place < 0 || value > best || (std::isnan(value) && !std::isnan(best))) {
        best = value;
        place = at;
      }
    result.values.push_back(best);
    result.places.push_back(static_cast<double>(place));
  });
  return result;
}

Tensor ties(const Shape& shape, DType dtype) { return ops::cast(round(numbers(shape, float64, 3)), dtype); }

}  // namespace

TEST_CASE("max_pool: values and places by the definition, in every layout and implementation", "[pool]") {
  for (const Geometry& g : geometries)
    for (const Shape& shape : {Shape{2, 3, 7, 6}, Shape{1, 40, 6, 9}, Shape{3, 1, 5, 5}})
      for (const std::string& layout : test::layouts())
        for (const std::string implementation : {"native", "reference"})
          for (const DType dtype : {float64, float32, bfloat16}) {
            CAPTURE(g.kernel, g.stride, g.padding, g.dilation, g.ceil_mode, shape, layout, implementation,
                    name(dtype));
            const Tensor x = laid_out(ties(shape, dtype), layout);
            const ops::MaxPoolResult got = ops::max_pool(x, {.kernel_size = g.kernel,
                                                             .stride = g.stride,
                                                             .padding = g.padding,
                                                             .dilation = g.dilation,
                                                             .ceil_mode = g.ceil_mode,
                                                             .implementation = implementation});
            const Pooled wanted = max_reference(x, got.values, g);
            CHECK(got.values.to_vector<double>() == wanted.values);
            CHECK(got.indices.to_vector<double>() == wanted.places);
            CHECK(got.values.dtype() == dtype);
            CHECK(got.values.is_contiguous(x.memory_format()));

            const Tensor dy = numbers(got.values.shape(), dtype, 5);
            const Tensor dx = ops::max_pool_backward(dy, got.indices, x.shape(), x.memory_format());
            std::vector<double> sums(static_cast<std::size_t>(x.numel()));
            const std::vector<double> gradient = dy.to_vector<double>();
            const std::size_t out = gradient.size() / static_cast<std::size_t>(shape[0] * shape[1]);
            const std::size_t in = sums.size() / static_cast<std::size_t>(shape[0] * shape[1]);
            for (std::size_t i = 0; i < gradient.size(); ++i)
              if (wanted.places[i] >= 0)
                sums[i / out * in + static_cast<std::size_t>(wanted.places[i])] += gradient[i];
            CHECK(relative_error(dx, sums) < (dtype == float64 ? 1e-15 : dtype == float32 ? 1e-6 : 1e-2));
            CHECK(dx.is_contiguous(x.memory_format()));
            // The adjoint takes from x what the result took.
            if (got.indices.to_vector<double>() == wanted.places && wanted.values[0] > -infinity)
              CHECK(ops::max_pool_gather(x, got.indices).to_vector<double>()[0] == wanted.values[0]);
          }
}

TEST_CASE("max_pool: gathering from windows and scattering by indices give the same bits", "[pool][device]") {
  if (pleat_test::lacks_gpus()) return;
  const auto compare = [](const Tensor& x, const ops::MaxPoolResult& pooled,
                          const ops::WindowRules& windows) {
    for (const std::string& layout : test::layouts()) {
      const Tensor dy = laid_out(numbers(pooled.values.shape(), x.dtype(), 5), layout);
      const Tensor indices = laid_out(pooled.indices, layout);
      for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
        const Tensor scattered = ops::max_pool_backward(dy, indices, x.shape(), format);
        const Tensor gathered =
            ops::max_pool_backward(ops::to_device(dy, "cuda"), ops::to_device(indices, "cuda"), windows,
                                   x.shape(), format, "max_pool");
        CHECK(gathered.is_contiguous(format));
        CHECK(gathered.to_vector<double>() == scattered.to_vector<double>());
      }
    }
  };
  for (const Shape& shape : {Shape{2, 3, 7, 6}, Shape{2, 3, 8}, Shape{1, 2, 5, 4, 6}})
    for (const DType dtype : {float64, float32, float16}) {
      const Tensor x = ties(shape, dtype);
      for (const Geometry& g : geometries) {
        if (x.rank() == 5 && g.kernel > 4) continue;
        CAPTURE(shape, name(dtype), g.kernel, g.stride, g.padding, g.dilation, g.ceil_mode);
        const MaxPoolOptions options{.kernel_size = g.kernel,
                                     .stride = g.stride,
                                     .padding = g.padding,
                                     .dilation = g.dilation,
                                     .ceil_mode = g.ceil_mode};
        compare(x, ops::max_pool(x, options), ops::max_pool_windows("max_pool", x, options));
      }
      for (const int64_t size : {1, 2, 3, 5, 11}) {
        CAPTURE(shape, name(dtype), size);
        const AdaptivePoolOptions options{.output_size = size};
        compare(x, ops::adaptive_max_pool(x, options), ops::adaptive_windows("max_pool", x, options));
      }
    }
}

TEST_CASE("max_pool: a plane of one pixel under several windows", "[pool]") {
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    const Tensor x = ops::to_format(numbers({2, 3, 1, 1}, float32), format);
    const auto got = ops::max_pool(x, {.kernel_size = 2, .stride = 1, .padding = 1});
    CHECK(got.values.shape() == Shape{2, 3, 2, 2});
    CHECK(ops::max_pool_backward(ones({2, 3, 2, 2}), got.indices, x.shape(), format).to_vector() ==
          std::vector<float>(6, 4));
    CHECK(ops::max_pool_gather(x, got.indices).to_vector() == got.values.to_vector());
  }
}

TEST_CASE("max_pool: a NaN is the maximum, and a window without elements is -infinity", "[pool]") {
  const Tensor x = zeros({1, 1, 4, 4});
  ops::fill(x.as_strided({1}, {1}, 5), std::nanf(""));
  for (const std::string implementation : {"native", "reference"})
    for (const std::string layout : {"contiguous", "channels_last"}) {
      const auto got =
          ops::max_pool(laid_out(x, layout), {.kernel_size = 2, .implementation = implementation});
      CHECK(std::isnan(got.values.to_vector()[0]));
      CHECK(got.indices.to_vector() == std::vector<float>{5, 2, 8, 10});
      const auto none =
          ops::max_pool(laid_out(ones({1, 2, 2, 2}), layout),
                        {.kernel_size = 2, .padding = 1, .dilation = 3, .implementation = implementation});
      CHECK(none.values.to_vector<double>() == std::vector<double>(2, -infinity));
      CHECK(none.indices.to_vector() == std::vector<float>(2, -1));
      CHECK(ops::max_pool_backward(ones({1, 2, 1, 1}), none.indices, {1, 2, 2, 2}, MemoryFormat::contiguous)
                .to_vector() == std::vector<float>(8, 0));
    }
}

TEST_CASE("avg_pool: by the definition, in every layout and implementation", "[pool]") {
  for (const Geometry& g : geometries)
    for (const bool include_pad : {true, false})
      for (const Shape& shape : {Shape{2, 3, 7, 6}, Shape{1, 40, 6, 9}})
        for (const std::string& layout : test::layouts())
          for (const std::string implementation : {"native", "reference"})
            for (const DType dtype : {float64, float32, float16}) {
              if (g.dilation > 1) continue;
              CAPTURE(g.kernel, g.stride, g.padding, g.ceil_mode, include_pad, shape, layout, implementation,
                      name(dtype));
              const Tensor x = laid_out(numbers(shape, dtype), layout);
              const Tensor y = avg_pool(x, {.kernel_size = g.kernel,
                                            .stride = g.stride,
                                            .padding = g.padding,
                                            .ceil_mode = g.ceil_mode,
                                            .count_include_pad = include_pad,
                                            .implementation = implementation});
              std::vector<double> wanted;
              std::size_t i = 0;
              for_windows(x, y, g, [&](const auto& window) {
                const auto size = [&](int64_t o, int64_t input) {
                  return std::min(o * g.stride - g.padding + g.kernel, input + g.padding) -
                         (o * g.stride - g.padding);
                };
                const auto at = static_cast<int64_t>(i++);
                const int64_t area =
                    size(at / y.size(3) % y.size(2), x.size(2)) * size(at % y.size(3), x.size(3));
                double sum = 0;
                for (const auto& [place, value] : window) sum += value;
                wanted.push_back(
                    sum / (include_pad ? static_cast<double>(area) : static_cast<double>(window.size())));
              });
              CHECK(relative_error(y, wanted) < (dtype == float64 ? 1e-14 : dtype == float32 ? 1e-6 : 1e-3));
              CHECK(y.is_contiguous(x.memory_format()));
            }
  const Tensor ten = full({1, 1, 4}, 10);
  CHECK(avg_pool(ten, {.kernel_size = 2, .divisor_override = 4}).to_vector() == std::vector<float>{5, 5});
}

TEST_CASE("avg_pool: more kinds of windows than are remembered, twice over", "[pool]") {
  for (int round = 0; round < 2; ++round)
    for (int64_t size = 4; size < 76; ++size) {
      CAPTURE(round, size);
      const Tensor x = test::numbers({1, 2, 3, size}, float32, static_cast<uint64_t>(size));
      const AvgPoolOptions native{.kernel_size = {2, 3}, .stride = {1, 2}};
      AvgPoolOptions reference = native;
      reference.implementation = "reference";
      CHECK(test::relative_error(avg_pool(x, native), avg_pool(x, reference)) < 1e-6);
    }
}

TEST_CASE("pools of long rows, of many planes and of wide windows agree with the reference", "[pool]") {
  struct Window {
    int64_t kernel, stride, padding;
  };
  for (const Shape& shape : {Shape{3, 7, 300}, Shape{2, 3, 4, 700}, Shape{5, 21, 6, 7}, Shape{2, 33, 5, 20},
                             Shape{1, 2, 3, 70, 65}})
    for (const std::string& layout : test::layouts())
      for (const DType dtype : {float64, float32})
        for (const Window& w :
             {Window{2, 2, 0}, Window{3, 1, 1}, Window{5, 3, 2}, Window{3, 5, 0}, Window{40, 4, 9}}) {
          if (shape.size() > 3 && w.kernel > 5) continue;
          if (shape.size() == 5 && w.kernel == 5) continue;
          CAPTURE(shape, layout, name(dtype), w.kernel, w.stride, w.padding);
          const double tolerance = dtype == float64 ? 1e-14 : 1e-6;
          const Tensor x = laid_out(ties(shape, dtype), layout);
          MaxPoolOptions max{.kernel_size = w.kernel, .stride = w.stride, .padding = w.padding};
          const Tensor values = ops::max_pool(x, max, "max_pool", false).values;
          const ops::MaxPoolResult both = ops::max_pool(x, max);
          max.implementation = "reference";
          const ops::MaxPoolResult wanted = ops::max_pool(x, max);
          CHECK(both.values.to_vector<double>() == wanted.values.to_vector<double>());
          CHECK(both.indices.to_vector<double>() == wanted.indices.to_vector<double>());
          CHECK(values.to_vector<double>() == wanted.values.to_vector<double>());
          x.set_requires_grad();
          AvgPoolOptions avg{.kernel_size = w.kernel, .stride = w.stride, .padding = w.padding};
          const Tensor y = avg_pool(x, avg);
          avg.implementation = "reference";
          const Tensor right = avg_pool(x, avg);
          CHECK(relative_error(y, right) < tolerance);
          const Tensor dy = laid_out(numbers(y.shape(), dtype, 7), layout);
          CHECK(relative_error(grad({y}, {x}, {dy})[0], grad({right}, {x}, {dy})[0]) < tolerance);
        }
  for (const int64_t size : {1, 3, 8})
    for (const std::string& layout : test::layouts()) {
      CAPTURE(size, layout);
      const Tensor x = laid_out(ties({2, 5, 40, 64}, float32), layout);
      const AdaptivePoolOptions native{.output_size = size};
      const AdaptivePoolOptions reference{.output_size = size, .implementation = "reference"};
      const ops::MaxPoolResult wanted = ops::adaptive_max_pool(x, reference);
      CHECK(ops::adaptive_max_pool(x, native).indices.to_vector<double>() ==
            wanted.indices.to_vector<double>());
      CHECK(adaptive_max_pool(x, native).to_vector<double>() == wanted.values.to_vector<double>());
      x.set_requires_grad();
      const Tensor y = adaptive_avg_pool(x, native), right = adaptive_avg_pool(x, reference);
      CHECK(relative_error(y, right) < 1e-6);
      const Tensor dy = numbers(y.shape(), float32, 7);
      CHECK(relative_error(grad({y}, {x}, {dy})[0], grad({right}, {x}, {dy})[0]) < 1e-6);
    }
}

TEST_CASE("adaptive pooling to one element is the mean and the maximum", "[pool]") {
  for (const std::string& layout : test::layouts()) {
    const Tensor x = laid_out(numbers({3, 17, 12, 11}, float32), layout);
    const std::vector<double> a = x.to_vector<double>();
    std::vector<double> mean(51), maximum(51, -infinity);
    for (std::size_t i = 0; i < a.size(); ++i) {
      mean[i / 132] += a[i] / 132;
      maximum[i / 132] = std::max(maximum[i / 132], a[i]);
    }
    CHECK(relative_error(adaptive_avg_pool(x, {}), mean) < 1e-6);
    CHECK(ops::adaptive_max_pool(x, {}).values.to_vector<double>() == maximum);
  }
  CHECK(adaptive_avg_pool(ones({2, 3, 4}), {.output_size = 0}).shape() == Shape{2, 3, 0});
}

TEST_CASE("pooling: empty batches and channels", "[pool]") {
  for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{2, 0, 4, 4}}) {
    const Shape halved{shape[0], shape[1], 2, 2};
    const auto got = ops::max_pool(zeros(shape), {.kernel_size = 2});
    CHECK(got.values.shape() == halved);
    CHECK(ops::max_pool_backward(got.values, got.indices, shape, MemoryFormat::contiguous).shape() == shape);
    CHECK(ops::max_pool_gather(zeros(shape), got.indices).shape() == halved);
    CHECK(avg_pool(zeros(shape), {.kernel_size = 2}).shape() == halved);
  }
}

TEST_CASE("pooling: the same bits for any number of threads", "[pool]") {
  const int before = num_threads();
  for (const std::string layout : {"contiguous", "channels_last"}) {
    const Tensor x = laid_out(numbers({5, 19, 40, 33}, float32), layout);
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const auto got = ops::max_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1});
      std::vector<float> all = avg_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1}).to_vector();
      const Tensor dx = ops::max_pool_backward(got.values, got.indices, x.shape(), x.memory_format());
      for (const Tensor& t : {got.values, dx})
        for (const float value : t.to_vector()) all.push_back(value);
      results.push_back(std::move(all));
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
  set_num_threads(before);
}

TEST_CASE("pooling: bad input is refused", "[pool][cpu]") {
  const Tensor x = ones({2, 3, 8, 8});
  CHECK_THROWS_WITH(ops::max_pool(x, {.kernel_size = 2, .padding = 2}),
                    Contains("max_pool: padding must be at most half of kernel_size, got 2 and 2"));
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = 3, .padding = 2}), ValueError);
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = 3, .padding = -1}), ValueError);
  CHECK_THROWS_WITH(ops::max_pool(x, {.kernel_size = 0}), Contains("kernel_size must be at least 1, got 0"));
  CHECK_THROWS_WITH(ops::max_pool(x, {.kernel_size = 2, .stride = 0}),
                    Contains("stride must be at least 1, got 0"));
  CHECK_THROWS_AS(ops::max_pool(x, {.kernel_size = 2, .dilation = 0}), ValueError);
  CHECK_THROWS_WITH(ops::max_pool(x, {.kernel_size = 9}),
                    Contains("a window of 9 does not fit spatial dimension 0 of [2, 3, 8, 8] float32 cpu"));
  CHECK_THROWS_AS(ops::max_pool(x, {.kernel_size = {2, 2, 2}}), ShapeError);
  CHECK_THROWS_AS(ops::max_pool(x, {.kernel_size = 3, .dilation = int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_AS(ops::max_pool(x, {.kernel_size = std::numeric_limits<int64_t>::max()}), ShapeError);
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = std::numeric_limits<int64_t>::max(),
                               .padding = std::numeric_limits<int64_t>::max() / 2}),
                  ShapeError);
  CHECK_THROWS_WITH(ops::max_pool(ones({2, 3}), {.kernel_size = 2}),
                    Contains("with 1 to 3 spatial dimensions"));
  CHECK_THROWS_WITH(avg_pool(ones({2, 3, 0, 4}), {.kernel_size = 1}), Contains("is empty"));
  CHECK_THROWS_AS(ops::max_pool(zeros({1, 1, 4}, {.dtype = int64}), {.kernel_size = 2}), DTypeError);
  CHECK_THROWS_WITH(avg_pool(x, {.kernel_size = 2, .divisor_override = 0}), Contains("must not be 0"));
  CHECK_THROWS_WITH(adaptive_avg_pool(x, {.output_size = -1}), Contains("output_size must be in"));
  CHECK_THROWS_WITH(ops::max_pool(x, {.kernel_size = 2, .implementation = "magic"}),
                    Contains("\"magic\" does not exist; there are: native, reference"));
  const auto got = ops::max_pool(x, {.kernel_size = 2});
  const auto back = [&](const Tensor& dy, const Tensor& indices, const Shape& shape) {
    ops::max_pool_backward(dy, indices, shape, MemoryFormat::contiguous);
  };
  CHECK_THROWS_WITH(back(ones({2, 3, 4, 3}), got.indices, x.shape()),
                    Contains("the gradient must be [2, 3, 4, 4]"));
  CHECK_THROWS_WITH(back(got.values, got.indices, {2, 4, 8, 8}),
                    Contains("do not belong to an input [2, 4, 8, 8]"));
  CHECK_THROWS_AS(back(got.values, got.indices, {2, 3, 4, 4}), IndexError);
  CHECK_THROWS_AS(back(got.values, ops::cast(full(got.values.shape(), -2), int32), x.shape()), IndexError);
  CHECK_THROWS_AS(back(got.values, got.values, x.shape()), DTypeError);
}
