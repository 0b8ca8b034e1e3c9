#include <cmath>

#include "pleat/core/base/instruction_set.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/implementation.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using namespace pleat::ops;
using pleat::test::relative_error;

namespace {

/// The error that sums of float32 have where roundings are independent: the unit roundoff times the root of
/// their length (Higham, Mary: "A new approach to probabilistic rounding error analysis", SISC 2019). Where
/// `winograd` is inside it, it is as good as `direct` and may be chosen in its place. Without fused
/// multiply-adds products are rounded, too.
double bound(int64_t products) {
  const double roundings = instruction_set() == "x86-64" ? 2 : 1;
  return 0x1p-24 * std::sqrt(roundings * static_cast<double>(products));
}

struct Operands {
  Tensor x, w, dy;
};

/// relu: as after one, without negative numbers.
Operands operands(const Shape& input, const Shape& weight, int64_t stride, bool relu, Generator& generator) {
  const auto numbers = [&](const Shape& shape) {
    const Tensor drawn = randn(shape, {.dtype = float32}, generator);
    return relu ? pleat::relu(drawn) : drawn;
  };
  const Tensor y = ops::conv_forward(zeros(input), zeros(weight), {}, {.stride = stride, .padding = 1});
  return {numbers(input), randn(weight, {.dtype = float32}, generator), randn(y.shape(), {}, generator)};
}

}  // namespace

TEST_CASE("winograd's error is inside the bound of float32 sums", "[conv][cpu]") {
  Generator generator(31);
  struct Kind {
    int64_t dims, kernel, stride;
  };
  const auto precise = [](const Tensor& t) { return ops::cast(t, float64); };
  for (const bool relu : {false, true})
    for (const int64_t channels : {16, 24, 32, 64, 256})
      for (const auto [dims, kernel, stride] : {Kind{1, 3, 1},
                                                {2, 3, 1},
                                                {1, 2, 1},
                                                {2, 2, 1},
                                                {1, 4, 2},
                                                {2, 4, 2},
                                                {2, 6, 2},
                                                {1, 4, 1},
                                                {1, 5, 1},
                                                {2, 5, 1},
                                                {1, 7, 1},
                                                {2, 7, 1},
                                                {1, 9, 1},
                                                {2, 8, 2},
                                                {1, 16, 2}}) {
        const Shape input = dims == 1 ? Shape{4, channels, 64} : Shape{2, channels, 14, 13};
        const Shape weight =
            dims == 1 ? Shape{channels, channels, kernel} : Shape{channels, channels, kernel, kernel};
        const auto [x, w, dy] = operands(input, weight, stride, relu, generator);
        const int64_t taps = dims == 1 ? kernel : kernel * kernel;
        const int64_t taps_of_class = dims == 1 ? kernel / stride : kernel / stride * (kernel / stride);
        for (const char* implementation : {"direct", "winograd:f2", "winograd:f4"}) {
          CAPTURE(relu, channels, dims, kernel, stride, implementation);
          const ConvOptions options{.stride = stride, .padding = 1, .implementation = implementation};
          const ConvOptions exact{.stride = stride, .padding = 1, .implementation = "direct"};
          CHECK(relative_error(conv_forward(x, w, {}, options),
                               conv_forward(precise(x), precise(w), {}, exact)) < bound(taps * channels));
          CHECK(relative_error(conv_backward_input(dy, w, input, options),
                               conv_backward_input(precise(dy), precise(w), input, exact)) <
                bound(taps_of_class * channels));
          CHECK(relative_error(conv_backward_weight(dy, x, weight, options),
                               conv_backward_weight(precise(dy), precise(x), weight, exact)) <
                bound(dy.numel() / channels));
        }
      }
}

TEST_CASE("winograd is chosen where it costs less", "[conv][cpu]") {
  const auto chosen = [](const Shape& input, const Shape& weight, int64_t stride, int64_t dilation = 1) {
    const ConvProblem problem =
        make_conv_problem("conv2d", 2, {"input", input, empty({})}, {"weight", weight, empty({})},
                          {.stride = stride, .padding = 1, .dilation = dilation});
    return std::string(all_conv_implementations().find(problem, ConvPass::forward, "")->name());
  };
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 3, 3}, 1) == "winograd");
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 3, 3}, 2) == "direct");
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 4, 4}, 2) == "winograd");
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 5, 5}, 1) == "winograd");
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 3, 3}, 1, 2) == "winograd");
  CHECK(chosen({8, 64, 32, 32}, {64, 64, 3, 3}, 1, 16) == "direct");  // most taps are in the padding
  CHECK(chosen({8, 3, 32, 32}, {64, 3, 3, 3}, 1) == "direct");
  CHECK(chosen({1, 64, 2, 2}, {64, 64, 3, 3}, 1) == "direct");  // four results: the weights cost most
}
