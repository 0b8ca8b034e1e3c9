#include "pleat/ops/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "pleat/autograd/backward.h"
#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/ops/shape/pad.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/layouts.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

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
    const Tensor x = test::laid_out(given, layout);
    x.set_requires_grad();
    const Tensor y = pool(x);
    CHECK(test::relative_error(y, wanted) < 1e-14);
    CHECK(y.is_contiguous(x.memory_format()));
    const Tensor got = grad({y}, {x}, {dy})[0];
    CHECK(test::relative_error(got, dx) < 1e-14);
    // Of a pool over everything on the CPU it is one number for each plane, expanded.
    const bool is_expanded = x.device().is_cpu() && y.numel() == y.size(0) * y.size(1) && !got.is_dense();
    CHECK((is_expanded || got.is_contiguous(x.memory_format())));
  }
}

template <class Options>
using PoolFunction = Tensor (*)(const Tensor&, const Options&);

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
        const Tensor x = test::laid_out(test::numbers(shape), layout);
        CAPTURE(x.describe());
        CHECK(gradcheck(f, {x}));
        CHECK(gradgradcheck(f, {x}));
        const auto linear = [&](const std::vector<Tensor>& t) { return pool(t[0]); };
        CHECK(gradgradcheck(linear, {x}));
      }
}

TEST_CASE("pooling: unbatched input, ranks, indices", "[pool]") {
  const Tensor x = test::numbers({3, 6, 6});
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

TEST_CASE("pooling: an empty batch has empty gradients", "[pool]") {
  const Tensor x = zeros({0, 3, 4, 4});
  x.set_requires_grad();
  sum(max_pool2d(x, {.kernel_size = 2}) + avg_pool2d(x, {.kernel_size = 2})).backward();
  CHECK(x.grad().shape() == Shape{0, 3, 4, 4});
}

namespace {

/// Values and the gradient of their weighted sum.
void check_equal_pools(const Tensor& given, const Pool& pool, const Pool& wanted) {
  for (const std::string& layout : test::layouts()) {
    CAPTURE(given.describe(), layout);
    const Tensor x = test::laid_out(given, layout);
    x.set_requires_grad();
    const Tensor y = pool(x), z = wanted(x);
    REQUIRE(y.shape() == z.shape());
    CHECK(test::relative_error(y, z.detach()) < 1e-14);
    const Tensor dy = test::numbers(y.shape());
    CHECK(test::relative_error(grad({y}, {x}, {dy})[0], grad({z}, {x}, {dy})[0]) < 1e-14);
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
  const double infinity = std::numeric_limits<double>::infinity();
  for (const PadForm& form : pad_forms) {
    CAPTURE(form.kernel, form.widths);
    const Tensor x = test::numbers(form.shape);
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
        const Tensor x = test::laid_out(rand({2, 3, 5, 7}, {.dtype = float64}, generator) + 0.1, layout);
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
  CHECK_THROWS_WITH(lp_pool2d(x, {.norm_type = std::numeric_limits<double>::infinity(), .kernel_size = 2}),
                    "lp_pool2d: norm_type must be above 0 and finite, got inf; that is max_pool of abs(x)");
  CHECK_THROWS_WITH(lp_pool2d(ones({1, 2, 4, 4}, {.dtype = int64}), {.norm_type = 2, .kernel_size = 2}),
                    Contains("lp_pool2d: needs floating numbers, got [1, 2, 4, 4] int64"));
  CHECK_THROWS_WITH(lp_pool2d(x, {.norm_type = 2, .kernel_size = 9}), Contains("lp_pool2d: "));
  CHECK_THROWS_WITH(lp_pool2d(ones({4}), {.norm_type = 2, .kernel_size = 2}),
                    Contains("lp_pool2d: input must be"));
}
