// Convolutions against PyTorch's recorded values and gradients.

#include <cmath>

#include "pleat/autograd/backward.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/fixture.h"

using namespace pleat;
using test::Json;

namespace {

Padding padding_from(const Json& padding) {
  return padding.is_string() ? Padding(padding.get<std::string>())
                             : Padding(padding.get<std::vector<int64_t>>());
}

PerDim per_dim(const Json& values) { return values.get<std::vector<int64_t>>(); }

/// The operation named by `op` on x, weight and bias.
Tensor convolve(const std::string& op, const Json& o, const Tensor& x, const Tensor& w, const Tensor& b) {
  if (op.starts_with("conv_transpose")) {
    const ConvTransposeOptions options{.stride = per_dim(o.at("stride")),
                                       .padding = padding_from(o.at("padding")),
                                       .output_padding = per_dim(o.at("output_padding")),
                                       .dilation = per_dim(o.at("dilation")),
                                       .groups = o.at("groups").get<int64_t>()};
    if (op == "conv_transpose1d") return conv_transpose1d(x, w, b, options);
    return op == "conv_transpose2d" ? conv_transpose2d(x, w, b, options) : conv_transpose3d(x, w, b, options);
  }
  const ConvOptions options{.stride = per_dim(o.at("stride")),
                            .padding = padding_from(o.at("padding")),
                            .dilation = per_dim(o.at("dilation")),
                            .groups = o.at("groups").get<int64_t>()};
  return op == "conv1d"   ? conv1d(x, w, b, options)
         : op == "conv2d" ? conv2d(x, w, b, options)
                          : conv3d(x, w, b, options);
}

void check_close(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.shape() == expected.shape());
  const auto a = got.to_vector<double>();
  const auto b = expected.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-12 * (1 + std::abs(b[i])));
}

}  // namespace

TEST_CASE("convolutions give PyTorch's values and gradients", "[conv]") {
  for (const char* op :
       {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    for (const Json& c : test::fixture_cases("layers", op)) {
      INFO(c.at("name"));
      auto inputs = test::tensors_from(c.at("inputs"));
      for (auto& [name, input] : inputs) input.set_requires_grad();
      const Tensor bias = inputs.contains("bias") ? inputs.at("bias") : Tensor();
      const Tensor y = convolve(op, c.at("options"), inputs.at("x"), inputs.at("weight"), bias);
      check_close(y, test::tensors_from(c.at("outputs")).begin()->second);
      y.backward(test::tensor_from(c.at("grad_output")));
      for (const auto& [name, gradient] : test::tensors_from(c.at("grads")))
        check_close(inputs.at(name).grad(), gradient);
    }
}
