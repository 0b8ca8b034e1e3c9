#include "pleat/ops/conv/conv.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/reduce/reduce.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/ops/conv_cases.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions& options) {
  return w.rank() == 3   ? conv1d(x, w, b, options)
         : w.rank() == 4 ? conv2d(x, w, b, options)
                         : conv3d(x, w, b, options);
}

Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& b,
                      const ConvTransposeOptions& options) {
  return w.rank() == 3   ? conv_transpose1d(x, w, b, options)
         : w.rank() == 4 ? conv_transpose2d(x, w, b, options)
                         : conv_transpose3d(x, w, b, options);
}

}  // namespace

TEST_CASE("convolutions pass gradcheck and gradgradcheck", "[conv]") {
  Generator generator(1);
  for (const std::string& implementation : ops::conv_implementations(default_device())) {
    int computed = 0;
    for (const test::ConvCase& c : test::small_conv_cases()) {
      INFO(implementation << ' ' << c.name());
      ConvOptions options = c.options;
      options.implementation = implementation;
      const Tensor x = randn(c.input, {.dtype = float64}, generator);
      const Tensor w = randn(c.weight, {.dtype = float64}, generator);
      const ops::ConvProblem problem = ops::forward_call(x, w, {}, options).problem;
      if (ops::all_conv_implementations().find(problem, ops::ConvPass::forward, implementation) == nullptr) {
        // "direct": on a GPU depthwise ones alone. "winograd": channels that fill a vector. "onednn":
        // float32.
        CHECK(((implementation == "winograd" && c.input[1] < 8) || implementation == "onednn" ||
               (implementation == "direct" && default_device().is_cuda())));
        continue;
      }
      ++computed;
      const Tensor b = randn({c.weight[0]}, {.dtype = float64}, generator);
      const auto f = [&](const std::vector<Tensor>& t) { return conv(t[0], t[1], t[2], options); };
      CHECK(gradcheck(f, {x, w, b}));
      CHECK(gradgradcheck(f, {x, w, b}));
      CHECK(gradcheck(f, {x.contiguous(MemoryFormat::channels_last), w, b}));
    }
    CHECK((computed > 0 || implementation == "onednn"));
  }
}

TEST_CASE("transposed convolutions pass gradcheck and gradgradcheck", "[conv]") {
  Generator generator(2);
  for (const test::ConvCase& c : test::small_conv_cases()) {
    if (!c.options.padding.mode().empty()) continue;
    INFO(c.name());
    const Tensor like = conv(zeros(c.input), zeros(c.weight), {}, c.options);
    const Tensor x = randn(like.shape(), {.dtype = float64}, generator);
    const Tensor w = randn(c.weight, {.dtype = float64}, generator);
    const Tensor b = randn({c.weight[1] * c.options.groups}, {.dtype = float64}, generator);
    const ConvTransposeOptions options{.stride = c.options.stride,
                                       .padding = c.options.padding,
                                       .dilation = c.options.dilation,
                                       .groups = c.options.groups};
    const auto f = [&](const std::vector<Tensor>& t) { return conv_transpose(t[0], t[1], t[2], options); };
    CHECK(gradcheck(f, {x, w, b}));
    CHECK(gradgradcheck(f, {x, w, b}));
  }
}

TEST_CASE("a transposed convolution is the adjoint of the convolution", "[conv]") {
  const Tensor x = randn({2, 3, 7, 8}, {.dtype = float64});
  const Tensor w = randn({5, 3, 3, 2}, {.dtype = float64});
  const Tensor y = conv2d(x, w, {.stride = 2, .padding = 1});
  const Tensor v = randn(y.shape(), {.dtype = float64});
  const Tensor back = conv_transpose2d(v, w, {}, {.stride = 2, .padding = 1, .output_padding = {0, 0}});
  REQUIRE(back.shape() == x.shape());
  CHECK(sum(y * v).item() == Approx(sum(x * back).item()).epsilon(1e-12));
}

TEST_CASE("unbatched input gives unbatched output", "[conv]") {
  const Tensor x = randn({3, 6, 6});
  const Tensor w = randn({4, 3, 3, 3});
  const Tensor y = conv2d(x, w);
  CHECK(y.shape() == Shape{4, 4, 4});
  CHECK(y.to_vector() == conv2d(x.as_strided({1, 3, 6, 6}, {108, 36, 6, 1}, 0), w).to_vector());
}

TEST_CASE("the first layer's input gradient is not computed when nobody needs it", "[conv]") {
  const Tensor x = randn({2, 3, 6, 6});
  const Tensor w = randn({4, 3, 3, 3}).set_requires_grad();
  // An implementation that does not exist would throw if the pass ran.
  const Tensor y = conv2d(x, w, {.backward_input_implementation = "none"});
  CHECK_NOTHROW(sum(y).backward());
  const Tensor wanted = x.detach().set_requires_grad();
  CHECK_THROWS_AS(sum(conv2d(wanted, w, {.backward_input_implementation = "none"})).backward(), ValueError);
}

// Sizes at which blocks of channels and filters are unequal, for vectors of all widths.
TEST_CASE("grouped convolutions of many sizes agree with the reference", "[conv][cpu]") {
  Generator generator(3);
  for (const DType dtype : {float64, float32})
    for (const int64_t groups : {2, 3})
      for (const int64_t channels : {3, 10, 20, 23, 28})
        for (const int64_t filters : {2, 16, 24}) {
          const TensorOptions options{.dtype = dtype, .device = Device()};
          const Tensor x = randn({2, groups * channels, 5, 6}, options, generator);
          const Tensor w = randn({groups * filters, channels, 3, 3}, options, generator);
          const Tensor dy = randn({2, groups * filters, 5, 6}, options, generator);
          const auto passes = [&](const std::string& implementation) {
            const Tensor image = x.detach().set_requires_grad(), weight = w.detach().set_requires_grad();
            const Tensor y =
                conv2d(image, weight, {}, {.padding = 1, .groups = groups, .implementation = implementation});
            y.backward(dy);
            return std::vector{y, image.grad(), weight.grad()};
          };
          const std::vector<Tensor> expected = passes("reference");
          for (const char* implementation : {"direct", "unfold"}) {
            const std::vector<Tensor> found = passes(implementation);
            for (std::size_t i = 0; i < found.size(); ++i) {
              CAPTURE(dtype, groups, channels, filters, implementation, i);
              CHECK(test::relative_error(found[i], expected[i].to_vector<double>()) < 1e-5);
            }
          }
        }
}

TEST_CASE("bad transposed convolutions are refused", "[conv]") {
  const Tensor x = zeros({2, 3, 5, 5});
  CHECK_THROWS_WITH(conv_transpose2d(x, zeros({4, 3, 3, 3})),
                    Contains("input has 3 channels, but weight [4, 3, 3, 3] needs 4"));
  CHECK_THROWS_WITH(conv_transpose2d(x, zeros({3, 4, 3, 3}), {}, {.output_padding = 1}),
                    Contains("output_padding 1 must be below"));
  CHECK_THROWS_WITH(conv_transpose2d(x, zeros({3, 4, 3, 3}), {}, {.padding = 4}),
                    Contains("the output would have size -1"));
  CHECK_THROWS_WITH(conv2d(x, zeros({3, 4, 3})), Contains("conv2d: the weight needs 4 dimensions"));
}
