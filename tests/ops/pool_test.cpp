#include "pleat/ops/pool/pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/copy.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/op_cases/layouts.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/gpu.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::laid_out;
using test::numbers;
using test::relative_error;

namespace {

std::vector<int64_t> list(const test::Json& json) { return json.get<std::vector<int64_t>>(); }

using Pool = std::function<Tensor(const Tensor&)>;

void check_case(const test::Json& json, const Pool& pool) {
  const Tensor given = test::tensors_from(json["inputs"])["x"];
  const Tensor wanted = test::tensors_from(json["outputs"])["y"];
  const Tensor dx = test::tensors_from(json["grads"])["x"];
  const Tensor dy = test::tensor_from(json["grad_output"]);
  for (const std::string& layout : test::layouts()) {
    CAPTURE(json["name"].get<std::string>(), layout);
    const Tensor x = laid_out(given, layout);
    x.set_requires_grad();
    const Tensor y = pool(x);
    CHECK(relative_error(y, wanted) < 1e-14);
    CHECK(y.is_contiguous(x.memory_format()));
    const Tensor got = grad({y}, {x}, {dy})[0];
    CHECK(relative_error(got, dx) < 1e-14);
    // Of a pool over everything on the CPU it is one number for each plane, expanded.
    const bool is_expanded = x.device().is_cpu() && y.numel() == y.size(0) * y.size(1) && !got.is_dense();
    CHECK((is_expanded || got.is_contiguous(x.memory_format())));
  }
}

template <class Options>
using PoolFunction = Tensor (*)(const Tensor&, const Options&);

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Geometry {
  int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
};

const std::vector<Geometry> geometries{
    {2, 2, 0, 1, false}, {3, 2, 1, 1, false}, {3, 2, 1, 1, true}, {3, 1, 1, 2, false}, {1, 1, 0, 1, false},
    {1, 3, 0, 1, true},  {4, 3, 2, 1, true},  {2, 3, 1, 2, true}, {5, 2, 2, 1, false}, {8, 4, 1, 1, true}};

MaxPoolOptions options_of(const Geometry& g, const std::string& implementation = "") {
  return {.kernel_size = g.kernel,
          .stride = g.stride,
          .padding = g.padding,
          .dilation = g.dilation,
          .ceil_mode = g.ceil_mode,
          .implementation = implementation};
}

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

TEST_CASE("pooling: PyTorch's results and gradients", "[pool]") {
  const std::vector<PoolFunction<MaxPoolOptions>> max{max_pool1d, max_pool2d, max_pool3d};
  const std::vector<PoolFunction<AvgPoolOptions>> avg{avg_pool1d, avg_pool2d, avg_pool3d};
  const std::vector<PoolFunction<AdaptivePoolOptions>> adaptive_max{adaptive_max_pool1d, adaptive_max_pool2d,
                                                                    adaptive_max_pool3d};
  const std::vector<PoolFunction<AdaptivePoolOptions>> adaptive_avg{adaptive_avg_pool1d, adaptive_avg_pool2d,
                                                                    adaptive_avg_pool3d};
  for (std::size_t d = 0; d < 3; ++d) {
    const std::string dims = "_pool" + std::to_string(d + 1) + "d";
    for (const test::Json& json : test::fixture_cases("layers", "max" + dims)) {
      const test::Json& o = json["options"];
      const MaxPoolOptions options{.kernel_size = list(o["kernel_size"]),
                                   .stride = list(o["stride"]),
                                   .padding = list(o["padding"]),
                                   .dilation = list(o["dilation"]),
                                   .ceil_mode = o["ceil_mode"].get<bool>()};
      check_case(json, [&](const Tensor& x) { return max[d](x, options); });
    }
    for (const test::Json& json : test::fixture_cases("layers", "avg" + dims)) {
      const test::Json& o = json["options"];
      const AvgPoolOptions options{.kernel_size = list(o["kernel_size"]),
                                   .stride = list(o["stride"]),
                                   .padding = list(o["padding"]),
                                   .ceil_mode = o["ceil_mode"].get<bool>(),
                                   .count_include_pad = o["count_include_pad"].get<bool>()};
      check_case(json, [&](const Tensor& x) { return avg[d](x, options); });
    }
    for (const auto& [op, pool] :
         {std::pair{"adaptive_max", adaptive_max[d]}, {"adaptive_avg", adaptive_avg[d]}})
      for (const test::Json& json : test::fixture_cases("layers", op + dims)) {
        const AdaptivePoolOptions options{.output_size = list(json["options"]["output_size"])};
        check_case(json, [&, function = pool](const Tensor& x) { return function(x, options); });
      }
  }
}

TEST_CASE("pooling: gradients, and gradients of gradients", "[pool][cpu]") {
  const std::vector<Pool> pools{
      [](const Tensor& x) {
        return max_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true});
      },
      [](const Tensor& x) {
        return max_pool(x, {.kernel_size = 2, .stride = 1, .padding = 1, .dilation = 2});
      },
      [](const Tensor& x) { return avg_pool(x, {.kernel_size = 2}); },
      [](const Tensor& x) {
        return avg_pool(
            x, {.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      [](const Tensor& x) { return adaptive_avg_pool(x, {.output_size = 2}); },
      [](const Tensor& x) { return adaptive_avg_pool(x, {}); },
      [](const Tensor& x) { return adaptive_max_pool(x, {.output_size = 3}); },
      [](const Tensor& x) { return adaptive_max_pool(x, {}); }};
  for (const Pool& pool : pools)
    for (const Shape& shape : {Shape{2, 2, 5}, Shape{2, 2, 4, 3}, Shape{1, 2, 3, 4, 3}})
      for (const std::string& layout : test::layouts()) {
        // Squared, so that the second derivative is not zero.
        const auto f = [&](const std::vector<Tensor>& t) { return pool(t[0] * t[0]); };
        const Tensor x = laid_out(numbers(shape), layout);
        CAPTURE(x.describe());
        CHECK(gradcheck(f, {x}));
        CHECK(gradgradcheck(f, {x}));
        const auto linear = [&](const std::vector<Tensor>& t) { return pool(t[0]); };
        CHECK(gradgradcheck(linear, {x}));
      }
}

TEST_CASE("pooling: unbatched input, ranks, indices", "[pool]") {
  const Tensor x = numbers({3, 6, 6});
  const Tensor y = max_pool2d(x, {.kernel_size = 2});
  CHECK(y.shape() == Shape{3, 3, 3});
  const auto [values, indices] =
      max_pool_with_indices(x.as_strided({1, 3, 6, 6}, {108, 36, 6, 1}, 0), {.kernel_size = 2});
  CHECK(values.to_vector<double>() == y.to_vector<double>());
  CHECK(indices.dtype() == int64);
  CHECK(x.to_vector<double>()[static_cast<std::size_t>(indices.to_vector<int64_t>()[0])] ==
        y.to_vector<double>()[0]);
  CHECK(avg_pool1d(x, {.kernel_size = 3}).shape() == Shape{3, 6, 2});
  CHECK(adaptive_avg_pool2d(x, {.output_size = {1, 2}}).shape() == Shape{3, 1, 2});
  CHECK_THROWS_WITH(max_pool2d(ones({2, 2}), {.kernel_size = 1}),
                    Contains("max_pool2d: input must be [N, C, and 2 spatial dimensions] or without N"));
  CHECK_THROWS_WITH(avg_pool3d(x, {.kernel_size = 1}), Contains("avg_pool3d: input must be"));
  CHECK_THROWS_WITH(adaptive_max_pool1d(ones({1, 1, 1, 1}), {}), Contains("adaptive_max_pool1d"));
}

namespace {

/// Values and the gradient of their weighted sum.
void check_equal_pools(const Tensor& given, const Pool& pool, const Pool& wanted) {
  for (const std::string& layout : test::layouts()) {
    CAPTURE(given.describe(), layout);
    const Tensor x = laid_out(given, layout);
    x.set_requires_grad();
    const Tensor y = pool(x), z = wanted(x);
    REQUIRE(y.shape() == z.shape());
    CHECK(relative_error(y, z.detach()) < 1e-14);
    const Tensor dy = numbers(y.shape());
    CHECK(relative_error(grad({y}, {x}, {dy})[0], grad({z}, {x}, {dy})[0]) < 1e-14);
  }
}

/// Padding as pools are given it, and the widths that `pad` wants for it.
struct PadForm {
  Shape shape;
  PerDim kernel;
  Padding padding;
  std::vector<int64_t> widths;
  PerDim dilation = 1;
};

const std::vector<PadForm> pad_forms{
    {{2, 3, 9}, 3, "same", {1, 1}},
    {{2, 3, 9}, 4, "same", {1, 2}},
    {{2, 3, 9}, 3, "valid", {0, 0}},
    {{2, 3, 9}, 3, "same", {2, 2}, 2},
    {{2, 3, 9}, 4, {{0, 2}}, {0, 2}},
    {{2, 3, 6, 7}, 3, "same", {1, 1, 1, 1}},
    {{2, 3, 6, 7}, {2, 5}, "same", {2, 2, 0, 1}},
    {{2, 3, 6, 7}, {4, 3}, {2, 1}, {1, 1, 2, 2}},
    {{2, 3, 6, 7}, {4, 3}, {{1, 2}, {0, 1}}, {0, 1, 1, 2}},
    {{2, 3, 6, 7}, 2, {{1, 0}}, {1, 0, 1, 0}},
    {{2, 3, 4, 5, 6}, {2, 3, 4}, "same", {1, 2, 1, 1, 0, 1}},
    {{2, 3, 4, 5, 6}, 2, {{1, 0}, {0, 1}, {1, 1}}, {1, 1, 0, 1, 1, 0}},
};

}  // namespace

TEST_CASE("pools take the padding of convolutions: as pools of padded input", "[pool]") {
  for (const PadForm& form : pad_forms) {
    CAPTURE(form.kernel, form.widths);
    const Tensor x = numbers(form.shape);
    for (const int64_t stride : {1, 2}) {
      if (stride > 1 && form.padding.mode() == "same") continue;
      check_equal_pools(
          x,
          [&](const Tensor& t) {
            return max_pool(t, {.kernel_size = form.kernel,
                                .stride = stride,
                                .padding = form.padding,
                                .dilation = form.dilation});
          },
          [&](const Tensor& t) {
            return max_pool(pad(t, form.widths, {.value = -infinity}),
                            {.kernel_size = form.kernel, .stride = stride, .dilation = form.dilation});
          });
      if (form.dilation != PerDim(1)) continue;  // which average pools do not have
      const AvgPoolOptions plain{.kernel_size = form.kernel, .stride = stride};
      check_equal_pools(
          x,
          [&](const Tensor& t) {
            return avg_pool(t, {.kernel_size = form.kernel, .stride = stride, .padding = form.padding});
          },
          [&](const Tensor& t) { return avg_pool(pad(t, form.widths), plain); });
      check_equal_pools(
          x,
          [&](const Tensor& t) {
            return avg_pool(t, {.kernel_size = form.kernel,
                                .stride = stride,
                                .padding = form.padding,
                                .count_include_pad = false});
          },
          [&](const Tensor& t) {
            const Tensor inside = avg_pool(pad(ones_like(t.detach()), form.widths), plain);
            return avg_pool(pad(t, form.widths), plain) / inside;
          });
    }
  }
}

TEST_CASE("ceil_mode counts padding of both sides, but not what lies beyond it", "[pool]") {
  // [0 | 1 2 3 4 | 0 0] in windows of 4 at distance 4: the second starts at element 3.
  const Tensor x = reshape(arange(1, 5, float64), {1, 1, 4});
  const auto pooled = [&](bool include) {
    return avg_pool(x, {.kernel_size = 4,
                        .stride = 4,
                        .padding = {{1, 2}},
                        .ceil_mode = true,
                        .count_include_pad = include})
        .to_vector<double>();
  };
  CHECK(pooled(true) == std::vector<double>{6.0 / 4, 4.0 / 3});
  CHECK(pooled(false) == std::vector<double>{6.0 / 3, 4.0});
}

TEST_CASE("padding that pools refuse", "[pool]") {
  const Tensor x = ones({1, 1, 6, 6});
  CHECK_THROWS_WITH(max_pool2d(x, {.kernel_size = 2, .padding = "same"}),
                    Contains("padding \"same\" needs stride 1, got [2, 2]"));
  CHECK_THROWS_WITH(avg_pool2d(x, {.kernel_size = 2, .padding = "full"}),
                    Contains("padding is a number, a list, \"same\" or \"valid\", got \"full\""));
  CHECK_THROWS_AS(max_pool2d(x, {.kernel_size = 3, .padding = {{0, 2}}}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel_size = 3, .padding = {{-1, 1}}}), ValueError);
  CHECK_THROWS_AS(max_pool2d(x, {.kernel_size = 3, .padding = {1, 1, 1}}), ShapeError);
}

TEST_CASE("lp_pool is the root of the sum of powers", "[pool]") {
  Generator generator(3);
  for (const double p : {1.0, 2.0, 3.0, 1.5})
    for (const std::string& layout : test::layouts())
      for (const bool ceil_mode : {false, true}) {
        CAPTURE(p, layout, ceil_mode);
        const Tensor x = laid_out(rand({2, 3, 5, 7}, {.dtype = float64}, generator) + 0.1, layout);
        const LpPoolOptions options{
            .norm_type = p, .kernel_size = {2, 3}, .stride = 2, .ceil_mode = ceil_mode};
        const Tensor y = lp_pool2d(x, options);
        CHECK(y.shape() == Shape{2, 3, ceil_mode ? 3 : 2, 3});
        CHECK(y.is_contiguous(x.memory_format()));
        const std::vector<double> in = x.to_vector<double>();
        const std::vector<double> out = y.to_vector<double>();
        for (int64_t i = 0; i < y.numel(); ++i) {
          const int64_t plane = i / (y.size(2) * y.size(3));
          const int64_t top = i / y.size(3) % y.size(2) * 2;
          const int64_t left = i % y.size(3) * 2;
          double sum = 0;
          for (int64_t h = top; h < std::min<int64_t>(top + 2, 5); ++h)
            for (int64_t w = left; w < std::min<int64_t>(left + 3, 7); ++w)
              sum += std::pow(in[static_cast<std::size_t>((plane * 5 + h) * 7 + w)], p);
          CHECK(out[static_cast<std::size_t>(i)] == Approx(std::pow(sum, 1 / p)).epsilon(1e-13));
        }
        const auto f = [&](const std::vector<Tensor>& t) { return lp_pool2d(t[0], options); };
        if (layout != test::layouts()[0]) continue;
        CHECK(gradcheck(f, {x}));
        CHECK(gradgradcheck(f, {x}));
      }
  // 1e4 squared is infinite in float16, its root is not.
  CHECK(lp_pool1d(full({1, 1, 4}, 1e4, {.dtype = float16}), {.norm_type = 2, .kernel_size = 4}).item() ==
        2e4);
  CHECK(lp_pool(zeros({2, 1, 4}), {.norm_type = 2, .kernel_size = 2}).shape() == Shape{2, 1, 2});
  CHECK(lp_pool3d(ones({2, 2, 2, 2}), {.norm_type = 3, .kernel_size = 2}).to_vector() ==
        std::vector<float>{2, 2});
}

TEST_CASE("lp_pool of two: the derivatives of float32 and of halves are those of float64", "[pool]") {
  Generator generator(4);
  const LpPoolOptions options{.norm_type = 2, .kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true};
  for (const std::string& layout : test::layouts()) {
    const Tensor numbers = laid_out(rand({2, 3, 6, 7}, {.dtype = float64}, generator) + 0.1, layout);
    const auto both = [&](DType dtype) {
      const Tensor x = numbers.to(dtype).detach().set_requires_grad();
      const Tensor y = lp_pool2d(x, options);
      const Tensor dx = grad({y}, {x}, {y.detach() * y.detach()}, {.retain_graph = true})[0];
      const Tensor recorded = grad({y}, {x}, {y}, {.create_graph = true})[0];
      return std::array{dx, grad({recorded}, {x}, {x.detach()})[0]};
    };
    const auto exact = both(float64);
    for (const DType dtype : {float32, float16, bfloat16}) {
      CAPTURE(layout, dtype);
      const auto [dx, second] = both(dtype);
      const double tolerance = dtype == float32 ? 1e-6 : dtype == float16 ? 3e-3 : 3e-2;
      CHECK(relative_error(dx.to(float64), exact[0]) < tolerance);
      CHECK(relative_error(second.to(float64), exact[1]) < tolerance);
    }
  }
}

TEST_CASE("lp_pool has no gradient where a window is zero", "[pool]") {
  const Tensor x = reshape(tensor({0.0, 0.0, 3.0, 4.0}), {1, 1, 4}).set_requires_grad();
  for (const double p : {2.0, 3.0}) {
    x.set_grad({});
    sum(lp_pool1d(x, {.norm_type = p, .kernel_size = 2})).backward();
    const std::vector<double> gradient = x.grad().to_vector<double>();
    CHECK(gradient[0] == 0);
    CHECK(gradient[1] == 0);
    CHECK(gradient[3] > gradient[2]);
  }
}

TEST_CASE("lp_pool: bad input is refused", "[pool]") {
  const Tensor x = ones({1, 2, 4, 4});
  CHECK_THROWS_WITH(lp_pool2d(x, {.norm_type = 0, .kernel_size = 2}),
                    "lp_pool2d: norm_type must be above 0 and finite, got 0");
  CHECK_THROWS_WITH(lp_pool2d(x, {.norm_type = infinity, .kernel_size = 2}),
                    "lp_pool2d: norm_type must be above 0 and finite, got inf; that is max_pool of abs(x)");
  CHECK_THROWS_WITH(lp_pool2d(ones({1, 2, 4, 4}, {.dtype = int64}), {.norm_type = 2, .kernel_size = 2}),
                    Contains("lp_pool2d: needs floating numbers, got [1, 2, 4, 4] int64"));
  CHECK_THROWS_WITH(lp_pool2d(x, {.norm_type = 2, .kernel_size = 9}), Contains("lp_pool2d: "));
  CHECK_THROWS_WITH(lp_pool2d(ones({4}), {.norm_type = 2, .kernel_size = 2}),
                    Contains("lp_pool2d: input must be"));
}

TEST_CASE("max_pool: values and places by the definition, in every layout and implementation", "[pool]") {
  for (const Geometry& g : geometries)
    for (const Shape& shape : {Shape{2, 3, 7, 6}, Shape{1, 40, 6, 9}, Shape{3, 1, 5, 5}})
      for (const std::string& layout : test::layouts())
        for (const std::string implementation : {"native", "reference"})
          for (const DType dtype : {float64, float32, bfloat16}) {
            CAPTURE(g.kernel, g.stride, g.padding, g.dilation, g.ceil_mode, shape, layout, implementation,
                    name(dtype));
            const Tensor x = laid_out(ties(shape, dtype), layout);
            x.set_requires_grad();
            const auto [y, indices] = max_pool_with_indices(x, options_of(g, implementation));
            const Pooled wanted = max_reference(x, y, g);
            CHECK(y.to_vector<double>() == wanted.values);
            CHECK(indices.to_vector<double>() == wanted.places);
            CHECK(y.dtype() == dtype);
            CHECK(y.is_contiguous(x.memory_format()));

            const Tensor dy = numbers(y.shape(), dtype, 5).set_requires_grad();
            const Tensor dx = grad({y}, {x}, {dy}, {.create_graph = true})[0];
            std::vector<double> sums(static_cast<std::size_t>(x.numel()));
            const std::vector<double> gradient = dy.to_vector<double>();
            std::vector<double> taken = wanted.values;
            const std::size_t out = gradient.size() / static_cast<std::size_t>(shape[0] * shape[1]);
            const std::size_t in = sums.size() / static_cast<std::size_t>(shape[0] * shape[1]);
            for (std::size_t i = 0; i < gradient.size(); ++i)
              if (wanted.places[i] >= 0)
                sums[i / out * in + static_cast<std::size_t>(wanted.places[i])] += gradient[i];
              else
                taken[i] = 0;
            CHECK(relative_error(dx, sums) < (dtype == float64 ? 1e-15 : dtype == float32 ? 1e-6 : 1e-2));
            CHECK(dx.is_contiguous(x.memory_format()));
            // The adjoint takes from x what the result took.
            CHECK(grad({dx}, {dy}, {x})[0].to_vector<double>() == taken);
          }
}

TEST_CASE("max_pool: gathering from windows and scattering by indices give the same bits", "[pool][device]") {
  if (pleat_test::lacks_gpus()) return;
  const DefaultDevice cpu{Device()};
  const auto compare = [](const Tensor& given, const Pool& pool) {
    for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last})
      for (const std::string& layout : test::layouts()) {
        const auto gradient = [&](Device device) {
          const Tensor x = ops::to_device(ops::to_format(given, format), device).set_requires_grad();
          const Tensor y = pool(x);
          const Tensor dy = laid_out(numbers(y.shape(), x.dtype(), 5), layout);
          return grad({y}, {x}, {laid_out(ops::to_device(dy, device), layout)})[0];
        };
        const Tensor gathered = gradient("cuda"), scattered = gradient(Device());
        CHECK(gathered.is_contiguous(format));
        CHECK(gathered.to_vector<double>() == scattered.to_vector<double>());
      }
  };
  for (const Shape& shape : {Shape{2, 3, 7, 6}, Shape{2, 3, 8}, Shape{1, 2, 5, 4, 6}})
    for (const DType dtype : {float64, float32, float16}) {
      const Tensor x = ties(shape, dtype);
      for (const Geometry& g : geometries) {
        if (x.rank() == 5 && g.kernel > 4) continue;
        CAPTURE(shape, name(dtype), g.kernel, g.stride, g.padding, g.dilation, g.ceil_mode);
        compare(x, [&](const Tensor& t) { return max_pool(t, options_of(g)); });
      }
      for (const int64_t size : {1, 2, 3, 5, 11}) {
        CAPTURE(shape, name(dtype), size);
        compare(x, [&](const Tensor& t) { return adaptive_max_pool(t, {.output_size = size}); });
      }
    }
}

TEST_CASE("max_pool: a plane of one pixel under several windows", "[pool]") {
  for (const MemoryFormat format : {MemoryFormat::contiguous, MemoryFormat::channels_last}) {
    const Tensor x = ops::to_format(numbers({2, 3, 1, 1}, float32), format).set_requires_grad();
    const Tensor y = max_pool(x, {.kernel_size = 2, .stride = 1, .padding = 1});
    CHECK(y.shape() == Shape{2, 3, 2, 2});
    const Tensor dy = ones({2, 3, 2, 2}).set_requires_grad();
    const Tensor dx = grad({y}, {x}, {dy}, {.create_graph = true})[0];
    CHECK(dx.to_vector() == std::vector<float>(6, 4));
    CHECK(grad({dx}, {dy}, {x})[0].to_vector() == y.to_vector());
  }
}

TEST_CASE("max_pool: a NaN is the maximum, and a window without elements is -infinity", "[pool]") {
  const Tensor x = zeros({1, 1, 4, 4});
  ops::fill(x.as_strided({1}, {1}, 5), std::nanf(""));
  for (const std::string implementation : {"native", "reference"})
    for (const std::string layout : {"contiguous", "channels_last"}) {
      const auto got =
          max_pool_with_indices(laid_out(x, layout), {.kernel_size = 2, .implementation = implementation});
      CHECK(std::isnan(got.values.to_vector()[0]));
      CHECK(got.indices.to_vector() == std::vector<float>{5, 2, 8, 10});
      const Tensor two = laid_out(ones({1, 2, 2, 2}), layout).set_requires_grad();
      const auto none = max_pool_with_indices(
          two, {.kernel_size = 2, .padding = 1, .dilation = 3, .implementation = implementation});
      CHECK(none.values.to_vector<double>() == std::vector<double>(2, -infinity));
      CHECK(none.indices.to_vector() == std::vector<float>(2, -1));
      CHECK(grad({none.values}, {two}, {ones({1, 2, 1, 1})})[0].to_vector() == std::vector<float>(8, 0));
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
      const Tensor x = numbers({1, 2, 3, size}, float32, static_cast<uint64_t>(size));
      const AvgPoolOptions native{.kernel_size = {2, 3}, .stride = {1, 2}};
      AvgPoolOptions reference = native;
      reference.implementation = "reference";
      CHECK(relative_error(avg_pool(x, native), avg_pool(x, reference)) < 1e-6);
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
          const Tensor values = max_pool(x, max);
          const auto both = max_pool_with_indices(x, max);
          max.implementation = "reference";
          const auto wanted = max_pool_with_indices(x, max);
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
      const Tensor maxima = adaptive_max_pool(x, reference);
      CHECK(adaptive_max_pool(x, native).to_vector<double>() == maxima.to_vector<double>());
      x.set_requires_grad();
      // Its gradient shows which elements were taken.
      const auto taken = [&](const AdaptivePoolOptions& options) {
        return grad({adaptive_max_pool(x, options)}, {x}, {numbers(maxima.shape(), float32, 7)})[0];
      };
      CHECK(taken(native).to_vector() == taken(reference).to_vector());
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
    CHECK(adaptive_max_pool(x, {}).to_vector<double>() == maximum);
  }
  CHECK(adaptive_avg_pool(ones({2, 3, 4}), {.output_size = 0}).shape() == Shape{2, 3, 0});
}

TEST_CASE("pooling: empty batches and channels", "[pool]") {
  for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{2, 0, 4, 4}}) {
    const Shape halved{shape[0], shape[1], 2, 2};
    const Tensor x = zeros(shape).set_requires_grad();
    const Tensor dy = zeros(halved).set_requires_grad();
    for (const Tensor& y : {max_pool2d(x, {.kernel_size = 2}), avg_pool2d(x, {.kernel_size = 2})}) {
      CHECK(y.shape() == halved);
      const Tensor dx = grad({y}, {x}, {dy}, {.create_graph = true})[0];
      CHECK(dx.shape() == shape);
      CHECK(grad({dx}, {dy}, {x})[0].shape() == halved);
    }
  }
}

TEST_CASE("pooling: the same bits for any number of threads", "[pool]") {
  const int before = num_threads();
  for (const std::string layout : {"contiguous", "channels_last"}) {
    const Tensor x = laid_out(numbers({5, 19, 40, 33}, float32), layout).set_requires_grad();
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      const Tensor y = max_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1});
      std::vector<float> all = avg_pool(x, {.kernel_size = 3, .stride = 2, .padding = 1}).to_vector();
      for (const Tensor& t : {y, grad({y}, {x}, {y.detach()})[0]})
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
  CHECK_THROWS_WITH(max_pool(x, {.kernel_size = 2, .padding = 2}),
                    Contains("max_pool: padding must be at most half of kernel_size, got 2 and 2"));
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = 3, .padding = 2}), ValueError);
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = 3, .padding = -1}), ValueError);
  CHECK_THROWS_WITH(max_pool(x, {.kernel_size = 0}), Contains("kernel_size must be at least 1, got 0"));
  CHECK_THROWS_WITH(max_pool(x, {.kernel_size = 2, .stride = 0}),
                    Contains("stride must be at least 1, got 0"));
  CHECK_THROWS_AS(max_pool(x, {.kernel_size = 2, .dilation = 0}), ValueError);
  CHECK_THROWS_WITH(max_pool(x, {.kernel_size = 9}),
                    Contains("a window of 9 does not fit spatial dimension 0 of [2, 3, 8, 8] float32 cpu"));
  CHECK_THROWS_AS(max_pool(x, {.kernel_size = {2, 2, 2}}), ShapeError);
  CHECK_THROWS_AS(max_pool(x, {.kernel_size = 3, .dilation = int64_t{1} << 62}), ShapeError);
  CHECK_THROWS_AS(max_pool(x, {.kernel_size = std::numeric_limits<int64_t>::max()}), ShapeError);
  CHECK_THROWS_AS(avg_pool(x, {.kernel_size = std::numeric_limits<int64_t>::max(),
                               .padding = std::numeric_limits<int64_t>::max() / 2}),
                  ShapeError);
  CHECK_THROWS_WITH(max_pool(ones({2, 3}), {.kernel_size = 2}), Contains("with 1 to 3 spatial dimensions"));
  CHECK_THROWS_WITH(avg_pool(ones({2, 3, 0, 4}), {.kernel_size = 1}), Contains("is empty"));
  CHECK_THROWS_AS(max_pool(zeros({1, 1, 4}, {.dtype = int64}), {.kernel_size = 2}), DTypeError);
  CHECK_THROWS_WITH(avg_pool(x, {.kernel_size = 2, .divisor_override = 0}), Contains("must not be 0"));
  CHECK_THROWS_WITH(adaptive_avg_pool(x, {.output_size = -1}), Contains("output_size must be in"));
  CHECK_THROWS_WITH(max_pool(x, {.kernel_size = 2, .implementation = "magic"}),
                    Contains("\"magic\" does not exist; there are: native, reference"));
}
