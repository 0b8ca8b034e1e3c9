#include <optional>
#include <utility>

#include "pleat/inference/inference.h"
#include "pleat/models/make_classifier.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/inference/trained.h"
#include "pleat/tests/relative_error.h"

using namespace pleat;
using Catch::Contains;
using test::relative_error;

namespace {

using Tensors = std::vector<Tensor>;

struct Case {
  Shape x, w;  ///< [N, C, ...], [K, C / groups, ...]
  ConvOptions options = {};
  bool bias = true;
};

/// Products of odd depth, of fewer columns than a vector and more than a panel, of a depth beyond what is
/// summed at once, of one row and several tiles of them; groups, one channel each, dilation, strides.
const std::vector<Case>& cases() {
  static const auto& all = *new std::vector<Case>{
      {{2, 32, 6, 5}, {48, 32, 1, 1}},
      {{1, 33, 1, 1}, {70, 33, 1, 1}},
      {{3, 7, 9, 8}, {5, 7, 3, 3}, {.padding = 1}},
      {{2, 3, 30, 30}, {96, 3, 7, 7}, {.stride = 2, .padding = 3}},
      {{1, 128, 4, 4}, {130, 128, 3, 3}, {.padding = 1}, false},
      {{1, 24, 12, 12}, {36, 8, 3, 3}, {.padding = 2, .dilation = 2, .groups = 3}},
      {{2, 40, 9, 9}, {40, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 40}},
      {{2, 17, 40}, {33, 17, 5}, {.padding = 2}},
      {{1, 5, 4, 6, 5}, {18, 5, 2, 3, 3}, {.stride = {1, 2, 1}}},
  };
  return all;
}

/// leaky_relu(norm(conv(x)) + z), the norm of pictures alone.
struct Block : nn::Module {
  Tensor weight, bias;
  ConvOptions options;
  nn::BatchNorm2d norm{{.num_features = 1}};

  void members(nn::Members& m) override {
    m("weight", weight);
    m("bias", bias);
    m("norm", norm);
  }
  Tensor y(const Tensor& x) {
    if (weight.rank() == 3) return conv1d(x, weight, bias, options);
    if (weight.rank() == 5) return conv3d(x, weight, bias, options);
    return norm(conv2d(x, weight, bias, options));
  }
};

}  // namespace

TEST_CASE("Inference: convolutions of half types take in norm, addition and activation", "[inference][cpu]") {
  for (const DType dtype : {bfloat16, float16})
    for (const char* implementation : {"", "unfold", "direct", "winograd", "reference"})
      for (std::size_t i = 0; i < cases().size(); ++i) {
        const Case& c = cases()[i];
        CAPTURE(name(dtype), implementation, i);
        manual_seed(7);
        const int64_t channels = c.w[0];
        Block block;
        block.weight = randn(c.w).to(dtype);
        if (c.bias) block.bias = randn({channels}).to(dtype);
        block.options = c.options;
        block.norm = nn::BatchNorm2d{{.num_features = channels}};
        copy_(block.norm.running_mean, randn({channels}));
        copy_(block.norm.running_var, rand({channels}) + 0.5);
        block.norm.to(dtype);
        block.eval();
        const Tensor x = randn(c.x).to(dtype), z = randn(block.y(x).shape()).to(dtype);
        const auto forward = [&](const Tensors& in) {
          return Tensors{leaky_relu(block.y(in[0]) + in[1], 0.2)};
        };
        const NoGrad off_the_tape;
        const ConvPolicy policy{{.implementation = implementation}};
        std::optional<Inference> engine;
        try {
          engine.emplace(block, Tensors{x, z}, forward, InferenceOptions{.measure = false});
        } catch (const Error&) {
          CHECK(std::string_view(implementation) == "winograd");
          continue;
        }
        CHECK_THAT(engine->summary(), Contains("add + leaky_relu: ") && !Contains("batch_norm in"));
        const Tensor y = (*engine)(Tensors{x, z})[0];
        CHECK(y.dtype() == dtype);
        Tensor alone;
        {
          const SerialScope scope;
          alone = (*engine)(Tensors{x, z})[0];
        }
        CHECK(max(abs(y - alone)).item<float>() == 0);
        // The same in float64, by the definition.
        const ConvPolicy plain{{.implementation = "reference"}};
        block.weight = block.weight.to(float64);
        if (c.bias) block.bias = block.bias.to(float64);
        block.norm.to(float64);
        const Tensor expected = forward({x.to(float64), z.to(float64)})[0];
        CHECK(relative_error(y, expected) < (dtype == bfloat16 ? 6e-3 : 8e-4));
      }
}

// Folded weights are rounded once more, by errors that a mean over pixels does not even out.
TEST_CASE("Inference: networks of half types are about as near to float64 as by themselves",
          "[inference][cpu]") {
  for (const char* const model : {"resnet20", "mobilenet_v2", "convnext_atto"})
    for (const DType dtype : {bfloat16, float16}) {
      CAPTURE(model, name(dtype));
      nn::Sequential net = test::trained(models::make_classifier(model, {.num_classes = 10}));
      const NoGrad off_the_tape;
      const Tensor x = randn({3, 3, 32, 32}).to(dtype);
      net.to(dtype);
      const Inference engine(net, x, {.measure = false});
      const Tensor y = engine(x), by_itself = net(x);
      CHECK(y.dtype() == dtype);
      net.to(float64);
      const Tensor expected = net(x.to(float64));
      CHECK(relative_error(y, expected) < 2.5 * relative_error(by_itself, expected));
    }
}

TEST_CASE("Inference: recurrent layers of half types compute as by themselves", "[inference][cpu]") {
  manual_seed(5);
  nn::LSTM net{{.input_size = 20, .hidden_size = 48, .num_layers = 2, .bidirectional = true}};
  net.eval();
  const auto forward = [&](const Tensors& in) { return Tensors{net.forward(in[0], {}).output}; };
  const NoGrad off_the_tape;
  for (const DType dtype : {bfloat16, float16})
    for (const int64_t batch : {1, 5}) {
      CAPTURE(name(dtype), batch);
      const Tensor x = randn({9, batch, 20}).to(dtype);
      net.to(dtype);
      const Inference engine(net, Tensors{x}, forward, {.batch_dims = {1}});
      const Tensor y = engine(Tensors{x})[0];
      CHECK(y.dtype() == dtype);
      // Input products may be added up in another order.
      CHECK(relative_error(y, forward({x})[0]) < (dtype == bfloat16 ? 4e-3 : 5e-4));
    }
}
