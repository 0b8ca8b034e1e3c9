#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/spatial/channel_affine.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

/// Sums that convolutions on the CPU make of their results, against the same of the written elements in
/// float64.

using namespace pleat;

namespace {

struct Case {
  Shape input;
  Shape weight;
};

/// Parts of tiles and of vectors, two pixels, several blocks of tiles, a kernel along a line.
const std::vector<Case> cases = {{{2, 16, 9, 7}, {24, 16, 3, 3}},
                                 {{1, 17, 1, 2}, {33, 17, 3, 3}},
                                 {{3, 40, 21, 18}, {65, 40, 3, 3}},
                                 {{2, 16, 50}, {31, 16, 3}},
                                 {{1, 20, 5, 6, 7}, {16, 20, 3, 3, 3}}};

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
  for (const Case& c : cases)
    for (const DType dtype : {float32, float64})
      for (const char* implementation : {"winograd:f2", "winograd:f4"}) {
        CAPTURE(c.input, dtype, implementation);
        f(c, dtype, ConvOptions{.padding = 1, .implementation = implementation, .moments = true});
      }
}

}  // namespace

TEST_CASE("conv: moments of the result are those of its elements", "[ops][conv][cpu]") {
  manual_seed(1);
  for_all([](const Case& c, DType dtype, const ConvOptions& options) {
    const Tensor w = numbers(c.weight, dtype), bias = ops::cast(randn({c.weight[0]}) * 5, dtype);
    const Tensor y = ops::conv_forward(numbers(c.input, dtype), w, bias, options);
    const auto moments = y.note<ops::Moments>();
    REQUIRE(moments != nullptr);
    std::vector<double> mean, m2;
    for (const std::vector<double>& elements : by_channel(y)) {
      double sum = 0, squares = 0;
      for (const double e : elements) sum += e;
      mean.push_back(sum / static_cast<double>(elements.size()));
      for (const double e : elements) squares += (e - mean.back()) * (e - mean.back());
      m2.push_back(squares);
    }
    const double bound = dtype == float32 ? 2e-6 : 1e-14;
    CHECK(test::relative_error(moments->mean, mean) < bound);
    CHECK(test::relative_error(moments->m2, m2) < bound);
  });
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
        const auto by = std::make_shared<ops::NormalizedBy>(x, affine, bounds);
        Shape output = c.input;
        output[1] = c.weight[0];
        const Tensor dx =
            ops::conv_backward_input(numbers(output, dtype), numbers(c.weight, dtype), c.input, options, by);
        const auto sums = dx.note<ops::GradientSums>();
        REQUIRE(sums != nullptr);
        CHECK(sums->of == by);
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

TEST_CASE("conv: a result that is converted has no note", "[ops][conv][cpu]") {
  const Tensor x = numbers({1, 16, 4, 4}, float32), w = numbers({16, 16, 3, 3}, float32);
  CHECK(ops::conv_forward(x, w, {}, {.padding = 1, .implementation = "winograd", .moments = true})
            .note<ops::Moments>() != nullptr);
  CHECK(ops::conv_forward(x, w, {}, {.padding = 1, .implementation = "winograd"}).note<ops::Moments>() ==
        nullptr);
  CHECK(ops::conv_forward(
            x, w, {},
            {.padding = 1, .implementation = "winograd", .format = MemoryFormat::contiguous, .moments = true})
            .note<ops::Moments>() == nullptr);
  CHECK(ops::conv_forward(ops::cast(x, bfloat16), ops::cast(w, bfloat16), {},
                          {.padding = 1, .implementation = "winograd", .moments = true})
            .note<ops::Moments>() == nullptr);
}
