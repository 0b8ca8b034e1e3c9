// Padding modes of convolution modules; what all modules have in common is in layers_test.cpp.

#include "pleat/nn/conv.h"

#include "pleat/autograd/gradcheck.h"
#include "pleat/core/base/error.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Matchers::Contains;
using test::Json;

namespace {

std::vector<int64_t> list(const Json& values) { return values.get<std::vector<int64_t>>(); }

/// The module of a case's options with the weights given.
template <int dims>
nn::Conv<dims> module_of(const Json& o, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Json& padding = o.at("padding");
  nn::Conv<dims> conv{
      {.in_channels = x.size(-dims - 1),
       .out_channels = o.at("out_channels").get<int64_t>(),
       .kernel_size = PerDim(list(o.at("kernel_size"))),
       .stride = list(o.at("stride")),
       .padding = padding.is_string() ? Padding(padding.get<std::string>()) : Padding(list(padding)),
       .dilation = list(o.at("dilation")),
       .groups = o.at("groups").get<int64_t>(),
       .padding_mode = o.at("padding_mode").get<std::string>()}};
  conv.weight = weight;
  conv.bias = bias;
  return conv;
}

template <int dims>
void check_cases() {
  for (const Json& c : test::fixture_cases("layers", "Conv" + std::to_string(dims) + "d")) {
    CAPTURE(c.at("name").get<std::string>());
    auto inputs = test::tensors_from(c.at("inputs"));
    for (auto& [name, input] : inputs) input.set_requires_grad();
    nn::Conv<dims> conv =
        module_of<dims>(c.at("options"), inputs.at("x"), inputs.at("weight"), inputs.at("bias"));
    const Tensor y = conv(inputs.at("x"));
    CHECK(test::relative_error(y, test::tensor_from(c.at("outputs").at("y"))) < 1e-13);
    y.backward(test::tensor_from(c.at("grad_output")));
    for (const auto& [name, gradient] : test::tensors_from(c.at("grads"))) {
      CAPTURE(name);
      CHECK(test::relative_error(inputs.at(name).grad(), gradient) < 1e-13);
    }
  }
}

}  // namespace

TEST_CASE("convolutions in all padding modes give PyTorch's values and gradients", "[nn][conv]") {
  check_cases<1>();
  check_cases<2>();
  check_cases<3>();
}

TEST_CASE("padding modes take pairs, keep the memory format, and can be differentiated twice", "[nn][conv]") {
  manual_seed(3);
  nn::Conv2d conv{{.in_channels = 2,
                   .out_channels = 3,
                   .kernel_size = 2,
                   .padding = {{1, 0}, {0, 2}},
                   .padding_mode = "circular"}};
  conv.to(float64);
  const Tensor x = randn({2, 2, 3, 4}, {.dtype = float64});
  CHECK(conv(x).shape() == Shape{2, 3, 3, 5});
  CHECK(conv(x).to_vector<double>() == conv(x.to(MemoryFormat::channels_last)).to_vector<double>());
  const auto f = [&](const std::vector<Tensor>& t) { return conv(t[0]) * conv(t[0]); };
  CHECK(gradcheck(f, {x}));
  CHECK(gradgradcheck(f, {x}));
  CHECK(conv.options_text() == "2, 3, kernel_size=(2, 2), padding=((1, 0), (0, 2)), padding_mode=circular");
}

TEST_CASE("padding modes that do not exist or do not fit are refused", "[nn][conv]") {
  CHECK_THROWS_WITH(
      (nn::Conv2d{{.in_channels = 1, .out_channels = 1, .kernel_size = 3, .padding_mode = "mirror"}}),
      "Conv2d: padding_mode is \"zeros\", \"reflect\", \"replicate\" or \"circular\", got \"mirror\"");
  nn::Conv1d conv{
      {.in_channels = 1, .out_channels = 1, .kernel_size = 3, .padding = 3, .padding_mode = "reflect"}};
  CHECK_THROWS_AS(conv(zeros({1, 1, 3})), ShapeError);
  CHECK(conv(zeros({1, 1, 4})).shape() == Shape{1, 1, 8});
  CHECK_THROWS_WITH(conv(zeros({1, 1, 4, 4})), Contains("conv1d"));
}
