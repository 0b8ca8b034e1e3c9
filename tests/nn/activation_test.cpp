#include "pleat/nn/activation.h"

#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/tests/catch.h"

using namespace pleat;

TEST_CASE("activation modules compute their functions with their options", "[nn]") {
  const Tensor x = linspace(-4, 4, 17);
  const auto same = [](const Tensor& a, const Tensor& b) { return a.to_vector() == b.to_vector(); };
  CHECK(same(nn::ReLU6()(x * 2), relu6(x * 2)));
  CHECK(same(nn::Hardtanh{}(x), hardtanh(x)));
  CHECK(same(nn::Hardtanh{{.min = -2, .max = 0.5}}(x), hardtanh(x, -2, 0.5)));
  CHECK(same(nn::LeakyReLU{{.negative_slope = 0.2}}(x), leaky_relu(x, 0.2)));
  CHECK(same(nn::PReLU{}(x), leaky_relu(x, 0.25)));
  const Tensor channels = reshape(x, {1, 17});
  CHECK(same(nn::PReLU{{.num_parameters = 17, .init = 0.5}}(channels), leaky_relu(channels, 0.5)));
  CHECK(nn::PReLU{}.parameters().size() == 1);
  CHECK(same(nn::ELU{{.alpha = 0.5}}(x), elu(x, 0.5)));
  CHECK(same(nn::GELU{}(x), gelu(x)));
  CHECK(same(nn::GELU{{.approximation = GeluApproximation::tanh}}(x), gelu(x, GeluApproximation::tanh)));
  CHECK(same(nn::Softplus{{.beta = 2}}(x), softplus(x, {.beta = 2})));
  CHECK(same(nn::SiLU()(x), silu(x)));
  CHECK(same(nn::Mish()(x), mish(x)));
  CHECK(same(nn::Hardswish()(x), hardswish(x)));
  CHECK(same(nn::Softshrink{}(x), softshrink(x)));
  CHECK(same(nn::Softshrink{{.lambd = 0.25}}(x), softshrink(x, 0.25)));
  CHECK(same(nn::SELU()(x), selu(x)));
  CHECK(same(nn::CELU{{.alpha = 0.5}}(x), celu(x, 0.5)));
  CHECK(same(nn::GLU{{.dim = 0}}(x * ones({2, 1})), glu(x * ones({2, 1}), 0)));
  CHECK(same(nn::LogSigmoid()(x), log_sigmoid(x)));
  CHECK(same(nn::Softsign()(x), softsign(x)));
  CHECK(same(nn::Tanhshrink()(x), tanhshrink(x)));
  CHECK(same(nn::Hardsigmoid()(x), hardsigmoid(x)));
  CHECK(same(nn::Hardshrink{}(x), hardshrink(x)));
  CHECK(same(nn::Hardshrink{{.lambd = 0.25}}(x), hardshrink(x, 0.25)));
  CHECK(same(nn::Threshold{{.threshold = 1, .value = 2}}(x), threshold(x, 1, 2)));
  CHECK(same(nn::Softmin{{.dim = 0}}(x), softmax(-x, 0)));
  CHECK(nn::Hardswish().type_name() == "Hardswish");
}

TEST_CASE("Softmax2d is a softmax over the channels of images", "[nn]") {
  const Tensor images = reshape(linspace(-1, 1, 24), {2, 3, 2, 2});
  CHECK(nn::Softmax2d()(images).to_vector() == softmax(images, 1).to_vector());
  CHECK(nn::Softmax2d()(images[1]).to_vector() == softmax(images[1], 0).to_vector());
  CHECK_THROWS_WITH(nn::Softmax2d()(images[0][0]),
                    Catch::Matchers::Contains("Softmax2d: needs [N, C, H, W] or [C, H, W], got"));
}
