#include <functional>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Matchers::Contains;

namespace {

/// A layer with parameters, and what it is given.
struct Case {
  std::string name;
  std::function<Tensor(const Tensor&)> layer;
  Shape shape;
};

template <class Module, class Options>
Case layer(const std::string& name, Options options, Shape shape) {
  return {name,
          [module = std::make_shared<Module>(std::move(options))](const Tensor& x) { return (*module)(x); },
          std::move(shape)};
}

std::vector<Case> layers() {
  return {
      layer<nn::Linear>("linear", nn::LinearOptions{4, 3}, {2, 4}),
      layer<nn::MultiheadAttention>("linear", nn::MultiheadAttentionOptions{4, 2}, {5, 2, 4}),
      layer<nn::LSTM>("linear", nn::RecurrentModuleOptions{4, 3}, {5, 2, 4}),
      layer<nn::GRUCell>("linear", nn::RecurrentCellOptions{4, 3}, {2, 4}),
      layer<nn::Conv1d>("conv1d", nn::ConvModuleOptions{4, 3, 1}, {2, 4, 5}),
      layer<nn::Conv2d>("conv2d", nn::ConvModuleOptions{4, 3, 1}, {2, 4, 5, 5}),
      layer<nn::Conv3d>("conv3d", nn::ConvModuleOptions{4, 3, 1}, {2, 4, 3, 3, 3}),
      layer<nn::ConvTranspose1d>("conv_transpose1d", nn::ConvTransposeModuleOptions{4, 3, 1}, {2, 4, 5}),
      layer<nn::ConvTranspose2d>("conv_transpose2d", nn::ConvTransposeModuleOptions{4, 3, 1}, {2, 4, 5, 5}),
      layer<nn::BatchNorm1d>("batch_norm", nn::BatchNormModuleOptions{4}, {5, 4}),
      layer<nn::BatchNorm2d>("batch_norm", nn::BatchNormModuleOptions{4}, {2, 4, 5, 5}),
      layer<nn::LayerNorm>("layer_norm", nn::LayerNormModuleOptions{4}, {2, 4}),
      layer<nn::GroupNorm>("group_norm", nn::GroupNormModuleOptions{2, 4}, {2, 4, 5}),
      layer<nn::InstanceNorm2d>(
          "instance_norm", nn::InstanceNormModuleOptions{.num_features = 4, .affine = true}, {2, 4, 5, 5})};
}

}  // namespace

TEST_CASE("a layer takes input of the type of its parameters, and says which it got", "[nn]") {
  for (const Case& c : layers()) {
    CAPTURE(c.name, c.shape);
    CHECK_NOTHROW(c.layer(randn(c.shape)));
    const Tensor batch = randn(c.shape, float64);
    CHECK_THROWS_AS(c.layer(batch), DTypeError);
    CHECK_THROWS_WITH(c.layer(batch), Contains(c.name + ": ") && Contains("float64") && Contains("float32") &&
                                          Contains("x.to(float32)"));
    CHECK_NOTHROW(c.layer(batch.to(float32)));
    CHECK_THROWS_AS(c.layer(ones(c.shape, int64)), DTypeError);
  }
}

TEST_CASE("matrix products take operands of one type", "[matmul]") {
  const Tensor a = ones({2, 2}), b = ones({2, 2}, float64), n = ones({2, 2}, int64);
  const auto refused = [](const auto& product) {
    CHECK_THROWS_AS(product(), DTypeError);
    CHECK_THROWS_WITH(product(), Contains("must be of one type"));
  };
  refused([&] { return matmul(a, b); });
  refused([&] { return matmul(n, a); });
  refused([&] { return addmm(a, a, b); });
  refused([&] { return addmm(b, a, a); });
  refused([&] { return linear(b, a); });
  refused([&] { return linear(n, a); });
  refused([&] { return linear(a, a, ones({2}, float64)); });
  refused([&] { return einsum("ij,jk->ik", {a, b}); });
  refused([&] { return einsum("ij,ij->ij", {a, b}); });
  CHECK(matmul(b, b).dtype() == float64);
  CHECK(matmul(n, n).dtype() == int64);
  CHECK((a + b).dtype() == float64);  // element by element types are promoted
  {
    const Autocast guard{bfloat16};
    CHECK(linear(a, a).dtype() == bfloat16);
    CHECK(matmul(a, ones({2, 2}, bfloat16)).dtype() == bfloat16);
  }
}
