#include <utility>

#include "pleat/inference/inference.h"
#include "pleat/pleat.h"
#include "pleat/tests/catch.h"

using namespace pleat;
using Catch::Contains;

namespace {

using Tensors = std::vector<Tensor>;

/// leaky_relu(conv_transpose(x) + z), the transposed convolution followed by a norm where it has one.
struct Up : nn::Module {
  Tensor weight, bias;
  ConvTransposeOptions options;
  nn::BatchNorm2d norm{{.num_features = 1}};
  bool with_norm = false;

  void members(nn::Members& m) override {
    m("weight", weight);
    m("bias", bias);
    m("norm", norm);
  }
  Tensor y(const Tensor& x) {
    const Tensor made = weight.rank() == 3   ? conv_transpose1d(x, weight, bias, options)
                        : weight.rank() == 4 ? conv_transpose2d(x, weight, bias, options)
                                             : conv_transpose3d(x, weight, bias, options);
    return with_norm ? norm(made) : made;
  }
};

struct Case {
  Shape x, w;  ///< [N, C, ...], [C, K / groups, ...]
  ConvTransposeOptions options = {};
  bool is_planned = true;
  bool bias = true;
  bool norm = false;
};

const std::vector<Case>& cases() {
  static const auto& all = *new std::vector<Case>{
      // Each kernel of `direct`: panels, few channels, lanes, groups.
      {{2, 20, 5, 6}, {20, 24, 4, 4}, {.stride = 2, .padding = 1}, true, true, true},
      {{2, 33, 5, 4}, {33, 24, 2, 2}, {.stride = 2}, true, true, true},
      {{1, 100, 1, 1}, {100, 24, 4, 4}, {}, true, true, true},
      {{3, 64, 7, 5}, {64, 3, 4, 4}, {.stride = 2, .padding = 1}},
      {{2, 32, 6, 5}, {32, 1, 3, 3}, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 32}},
      {{2, 32, 6, 5}, {32, 4, 3, 3}, {.stride = 2, .groups = 8}},
      {{2, 12, 6, 5}, {12, 5, 3, 2}, {.stride = {3, 1}, .padding = {0, 1}, .groups = 3}},
      // Pixels that no tap reaches.
      {{2, 16, 5, 3}, {16, 17, 1, 1}, {.stride = 2}},
      {{2, 16, 5, 3}, {16, 17, 2, 1}, {.stride = 3, .output_padding = {2, 1}}, true, true, true},
      {{2, 16, 5, 3}, {16, 16, 3, 3}, {.stride = 2, .dilation = 2}, true, false},
      {{1, 8, 4, 4}, {8, 4, 3, 3}, {.stride = 2, .padding = {0, 2}, .output_padding = 1}},
      {{1, 8, 4, 4}, {8, 4, 3, 3}, {.padding = Padding{{1, 0}, {0, 2}}, .dilation = {2, 1}}},
      // Zeros around the convolution's gradient.
      {{1, 8, 4, 4}, {8, 4, 3, 3}, {.output_padding = {2, 0}, .dilation = 3}, false},
      {{1, 2, 1, 1}, {2, 3, 1, 1}, {.stride = 3, .padding = 1, .output_padding = 2}, true},
      {{2, 20, 9}, {20, 24, 4}, {.stride = 2, .padding = 1}},
      {{2, 6, 9}, {6, 3, 5}, {.stride = 3, .output_padding = 2, .dilation = 2, .groups = 2}},
      {{2, 17, 3, 4, 2}, {17, 8, 2, 2, 2}, {.stride = 2}},
      {{1, 16, 3, 4, 2}, {16, 16, 3, 4, 1}, {.stride = {1, 2, 1}, .padding = {1, 1, 0}}},
  };
  return all;
}

}  // namespace

TEST_CASE("Inference: transposed convolutions of all kinds are prepared and finished", "[inference][cpu]") {
  for (const DType dtype : {float32, float64, bfloat16})
    for (const char* implementation : {"", "direct", "winograd:f2", "winograd:f4", "unfold", "reference"})
      for (std::size_t i = 0; i < cases().size(); ++i) {
        const Case& c = cases()[i];
        CAPTURE(name(dtype), implementation, i);
        Up up;
        up.weight = randn(c.w).to(dtype);
        up.options = c.options;
        const int64_t channels = c.w[1] * c.options.groups;
        if (c.bias) up.bias = randn({channels}).to(dtype);
        if (c.norm) {
          up.norm = nn::BatchNorm2d{{.num_features = channels}};
          copy_(up.norm.running_mean, randn({channels}));
          copy_(up.norm.running_var, rand({channels}) + 0.5);
          up.with_norm = true;
          up.norm.to(dtype);
        }
        up.eval();
        const Tensor x = randn(c.x).to(dtype), z = randn(up.y(x).shape()).to(dtype);
        const auto forward = [&](const Tensors& in) { return Tensors{leaky_relu(up.y(in[0]) + in[1], 0.2)}; };
        const NoGrad off_the_tape;
        const ConvPolicy policy{{.implementation = implementation}};
        std::optional<Inference> engine;
        try {
          engine.emplace(up, Tensors{x, z}, forward, InferenceOptions{.measure = false});
          (void)(*engine)(Tensors{x, z});
        } catch (const Error&) {
          CHECK(std::string_view(implementation).starts_with("winograd"));
          continue;
        }
        if (std::string_view(implementation).starts_with("winograd") &&
            !Contains(": winograd").match(engine->summary()))
          continue;
        if (c.is_planned) CHECK_THAT(engine->summary(), Contains("add + leaky_relu: "));
        const Tensor y = (*engine)(Tensors{x, z})[0];
        // The same in float64, by the definition.
        const ConvPolicy plain{{.implementation = "reference"}};
        up.weight = up.weight.to(float64);
        if (c.bias) up.bias = up.bias.to(float64);
        up.norm.to(float64);
        const Tensor expected = forward({x.to(float64), z.to(float64)})[0];
        const double apart = norm(y.to(float64) - expected).item<double>() / norm(expected).item<double>();
        CHECK(apart < (dtype == float64 ? 1e-12 : dtype == float32 ? 1e-5 : 8e-3));
      }
}
