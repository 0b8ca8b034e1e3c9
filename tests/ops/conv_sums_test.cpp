#include <cmath>
#include <string>
#include <vector>

#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/fusion.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/matmul/gemm.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

/// Sums that convolutions on the CPU make of their results, against the same of the written elements in
/// float64.

using namespace pleat;

namespace {

struct Case {
  Shape input;
  Shape weight;
  ConvOptions options = {.padding = 1};
};

/// Parts of tiles and of vectors, two pixels, several blocks of tiles, a kernel along a line.
const std::vector<Case> cases = {{{2, 16, 9, 7}, {24, 16, 3, 3}},
                                 {{1, 17, 1, 2}, {33, 17, 3, 3}},
                                 {{3, 40, 21, 18}, {65, 40, 3, 3}},
                                 {{2, 16, 50}, {31, 16, 3}},
                                 {{1, 20, 5, 6, 7}, {16, 20, 3, 3, 3}}};

/// Parts of vectors; sources read in place and not; many channels; depthwise, a last block that begins
/// earlier, few channels; stride classes, also empty ones.
const std::vector<Case> direct_cases = {
    {{2, 16, 9, 7}, {24, 16, 1, 1}, {}},
    {{3, 37, 21, 18}, {71, 37, 1, 1}, {}},
    {{2, 530, 5, 3}, {40, 530, 1, 1}, {}},
    {{64, 256, 1, 2}, {320, 256, 1, 1}, {}},
    {{2, 20, 9, 8}, {24, 20, 1, 1}, {.stride = 2}},
    {{2, 20, 9, 8}, {33, 20, 3, 3}, {.stride = 2, .padding = 1}},
    {{2, 32, 9, 8}, {32, 16, 3, 3}, {.padding = 1, .groups = 2}},
    {{3, 24, 33, 31}, {24, 1, 3, 3}, {.padding = 1, .groups = 24}},
    {{2, 144, 10, 10}, {144, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 144}},
    {{1, 6, 5, 9}, {6, 1, 3, 3}, {.padding = 1, .groups = 6}},
    {{2, 70, 40}, {70, 1, 5}, {.padding = 2, .groups = 70}}};

/// Elements of each channel, in float64.
std::vector<std::vector<double>> by_channel(const Tensor& x) {
  const std::vector<double> all = x.to_vector<double>();
  const auto channels = static_cast<std::size_t>(x.size(1));
  const std::size_t pixels = all.size() / channels / static_cast<std::size_t>(x.size(0));
  std::vector<std::vector<double>> elements(channels);
  for (std::size_t i = 0; i < all.size(); ++i) elements[i / pixels % channels].push_back(all[i]);
  return elements;
}

Tensor numbers(const Shape& shape, DType dtype) {
  return ops::cast(randn(shape), dtype).to(MemoryFormat::channels_last);
}

template <class F>
void for_all(const F& f) {
  const auto run = [&](const Case& c, const char* implementation) {
    for (const DType dtype : {float32, float64}) {
      CAPTURE(c.input, c.weight, dtype, implementation);
      ConvOptions options = c.options;
      options.implementation = implementation;
      f(c, dtype, options);
    }
  };
  for (const Case& c : cases)
    for (const char* implementation : {"winograd:f2", "winograd:f4"}) run(c, implementation);
  for (const Case& c : direct_cases) run(c, "direct");
}

}  // namespace

TEST_CASE("conv: moments of the result are those of its elements", "[ops][conv][cpu]") {
  manual_seed(1);
  const auto check = [](const Case& c, DType dtype, const ConvOptions& options) {
    const Tensor w = numbers(c.weight, dtype), bias = ops::cast(randn({c.weight[0]}) * 5, dtype);
    ops::ConvFusion fusion{.wants_moments = true};
    const Tensor y = ops::conv_forward(numbers(c.input, dtype), w, bias, options, &fusion);
    const auto& moments = fusion.moments;
    REQUIRE(moments.has_value());
    std::vector<double> mean, m2;
    for (const std::vector<double>& elements : by_channel(y)) {
      double sum = 0, squares = 0;
      for (const double e : elements) sum += e;
      mean.push_back(sum / static_cast<double>(elements.size()));
      for (const double e : elements) squares += (e - mean.back()) * (e - mean.back());
      m2.push_back(squares);
    }
    const double bound = dtype == float64 ? 1e-14 : 2e-6;
    CHECK(test::relative_error(moments->mean, mean) < bound);
    CHECK(test::relative_error(moments->m2, m2) < bound);
  };
  for_all(check);
  for (Case c : direct_cases)
    for (const DType dtype : {float32, float64, bfloat16}) {
      if (dtype == bfloat16 && !ops::multiplies_bfloat16()) continue;
      CAPTURE(c.input, c.weight, dtype);
      c.options.implementation = "unfold";
      check(c, dtype, c.options);
    }
}

TEST_CASE("conv: sums of the input's gradient are those of its elements", "[ops][conv][cpu]") {
  manual_seed(2);
  for_all([](const Case& c, DType dtype, const ConvOptions& options) {
    const Tensor x = numbers(c.input, dtype);
    const auto channels = static_cast<std::size_t>(x.size(1));
    const auto run = [&]<class T>(T) {
      for (const Bounds& bounds : {Bounds(), Bounds{.min = 0}, Bounds{.min = -0.25, .max = 0.5}}) {
        ops::Affine<T> affine(channels);
        for (std::size_t i = 0; i < channels; ++i) {
          affine.shift[i] = static_cast<T>(0.1 * static_cast<double>(i % 7));
          affine.scale[i] = static_cast<T>(i % 2 == 0 ? 1.5 : -0.5);
          affine.bias[i] = static_cast<T>(0.3 - 0.1 * static_cast<double>(i % 5));
        }
        const ops::Normalization by(affine, bounds);
        ops::ConvFusion fusion{.by = &by, .x = x};
        const Tensor w = numbers(c.weight, dtype);
        const Tensor of_result = numbers(ops::conv_forward(x, w, {}, options).shape(), dtype);
        const Tensor dx = ops::conv_backward_input(of_result, w, c.input, options, &fusion);
        const auto& sums = fusion.sums;
        REQUIRE(sums.has_value());
        const auto gradients = by_channel(dx), inputs = by_channel(x);
        std::vector<double> dy(channels), dy_x(channels);
        for (std::size_t k = 0; k < channels; ++k)
          for (std::size_t i = 0; i < inputs[k].size(); ++i) {
            const T d = static_cast<T>(inputs[k][i]) - affine.shift[k];
            const T y = std::fma(d, affine.scale[k], affine.bias[k]);
            const bool open = y > static_cast<T>(bounds.min) && y < static_cast<T>(bounds.max);
            dy[k] += open ? gradients[k][i] : 0;
            dy_x[k] += open ? gradients[k][i] * static_cast<double>(d) : 0;
          }
        const double bound = dtype == float32 ? 2e-6 : 1e-14;
        CHECK(test::relative_error(sums->dy, dy) < bound);
        CHECK(test::relative_error(sums->dy_x, dy_x) < bound);
      }
    };
    if (dtype == float32)
      run(float());
    else
      run(double());
  });
}

TEST_CASE("conv: a result that is converted has no moments", "[ops][conv][cpu]") {
  const Tensor x = numbers({1, 16, 4, 4}, float32), w = numbers({16, 16, 3, 3}, float32);
  const auto has_moments = [](const Tensor& of, const Tensor& by, ConvOptions options) {
    options.padding = 1, options.implementation = "winograd";
    ops::ConvFusion fusion{.wants_moments = true};
    ops::conv_forward(of, by, {}, options, &fusion);
    return fusion.moments.has_value();
  };
  CHECK(has_moments(x, w, {}));
  CHECK_FALSE(has_moments(x, w, {.format = MemoryFormat::contiguous}));
  CHECK_FALSE(has_moments(ops::cast(x, bfloat16), ops::cast(w, bfloat16), {}));
}

TEST_CASE("conv: patches as channels have no sums", "[ops][conv][cpu]") {
  const Tensor x = numbers({2, 16, 8, 8}, float32), w = numbers({32, 16, 2, 2}, float32);
  const ops::Normalization by(ops::Affine<float>(16), Bounds());
  ops::ConvFusion fusion{.by = &by, .x = x};
  ops::conv_backward_input(numbers({2, 32, 4, 4}, float32), w, x.shape(),
                           {.stride = 2, .implementation = "direct"}, &fusion);
  CHECK_FALSE(fusion.sums.has_value());
}

TEST_CASE("conv: sums have the same bits for any number of threads", "[ops][conv][cpu]") {
  const int before = num_threads();
  for (const Case& c : direct_cases) {
    CAPTURE(c.input, c.weight);
    manual_seed(3);
    const Tensor x = numbers(c.input, float32), w = numbers(c.weight, float32);
    ConvOptions options = c.options;
    options.implementation = "direct";
    const auto moments = [&](int threads) {
      set_num_threads(threads);
      ops::ConvFusion fusion{.wants_moments = true};
      ops::conv_forward(x, w, {}, options, &fusion);
      return *fusion.moments;
    };
    const auto alone = moments(1);
    for (const int threads : {2, 5}) {
      const auto together = moments(threads);
      CHECK(together.mean == alone.mean);
      CHECK(together.m2 == alone.m2);
    }
  }
  set_num_threads(before);
}
