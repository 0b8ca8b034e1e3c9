#pragma once

#include "pleat/nn/layer.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/softmax/softmax.h"

/// Activation functions as modules; formulas: ops/elementwise/activation.h.

namespace pleat::nn {

using ReLU = FunctionLayer<"ReLU", relu>;
using ReLU6 = FunctionLayer<"ReLU6", relu6>;
using Sigmoid = FunctionLayer<"Sigmoid", sigmoid>;
using Tanh = FunctionLayer<"Tanh", tanh>;

struct HardtanhOptions {
  double min = -1, max = 1;
};
using Hardtanh = FunctionLayer<"Hardtanh", hardtanh, &HardtanhOptions::min, &HardtanhOptions::max>;

struct LeakyReLUOptions {
  double negative_slope = 0.01;
};
using LeakyReLU = FunctionLayer<"LeakyReLU", leaky_relu, &LeakyReLUOptions::negative_slope>;

struct PReLUOptions {
  int64_t num_parameters = 1;  ///< 1, or the number of channels
  double init = 0.25;
};
/// x where positive, else weight * x; see prelu. weight [num_parameters] starts as `init`.
class PReLU : public Layer<"PReLU"> {
 public:
  /// Throws ValueError unless num_parameters is at least 1 and init finite.
  explicit PReLU(PReLUOptions options = {});
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }
  void members(Members& m) override { m("weight", weight); }
  std::string options_text() const override { return std::to_string(weight.numel()); }

  Tensor weight;
};

struct ELUOptions {
  double alpha = 1;
};
using ELU = FunctionLayer<"ELU", elu, &ELUOptions::alpha>;

using SELU = FunctionLayer<"SELU", selu>;

struct CELUOptions {
  double alpha = 1;
};
using CELU = FunctionLayer<"CELU", celu, &CELUOptions::alpha>;

struct GLUOptions {
  int64_t dim = -1;
};
using GLU = FunctionLayer<"GLU", glu, &GLUOptions::dim>;

struct GELUOptions {
  GeluApproximation approximation = GeluApproximation::none;
};
using GELU = FunctionLayer<"GELU", gelu, &GELUOptions::approximation>;

using Softplus = FunctionLayer<"Softplus", softplus>;

using LogSigmoid = FunctionLayer<"LogSigmoid", log_sigmoid>;
using Softsign = FunctionLayer<"Softsign", softsign>;
using Tanhshrink = FunctionLayer<"Tanhshrink", tanhshrink>;
using SiLU = FunctionLayer<"SiLU", silu>;
using Mish = FunctionLayer<"Mish", mish>;
using Hardswish = FunctionLayer<"Hardswish", hardswish>;
using Hardsigmoid = FunctionLayer<"Hardsigmoid", hardsigmoid>;

struct SoftshrinkOptions {
  double lambd = 0.5;  ///< at least 0
};
using Softshrink = FunctionLayer<"Softshrink", softshrink, &SoftshrinkOptions::lambd>;

using HardshrinkOptions = SoftshrinkOptions;
using Hardshrink = FunctionLayer<"Hardshrink", hardshrink, &HardshrinkOptions::lambd>;

struct ThresholdOptions {
  double threshold = 0;
  double value = 0;  ///< of elements that are not above the threshold
};
using Threshold =
    FunctionLayer<"Threshold", threshold, &ThresholdOptions::threshold, &ThresholdOptions::value>;

struct SoftmaxOptions {
  int64_t dim = -1;
};
using Softmax = FunctionLayer<"Softmax", softmax, &SoftmaxOptions::dim>;
using LogSoftmax = FunctionLayer<"LogSoftmax", log_softmax, &SoftmaxOptions::dim>;
using Softmin = FunctionLayer<"Softmin", softmin, &SoftmaxOptions::dim>;
/// softmax over the channels of [N, C, H, W] or [C, H, W]. Other ranks throw ShapeError.
struct Softmax2d : Layer<"Softmax2d"> {
  Tensor forward(const Tensor& x) override;
};

namespace detail {
void check_options(LayerName layer, const HardtanhOptions& options);
void check_options(LayerName layer, const LeakyReLUOptions& options);
void check_options(LayerName layer, const ELUOptions& options);
void check_options(LayerName layer, const CELUOptions& options);
void check_options(LayerName layer, const SoftplusOptions& options);
void check_options(LayerName layer, const SoftshrinkOptions& options);
void check_options(LayerName layer, const ThresholdOptions& options);
std::string text_of_option(LayerName, GeluApproximation value);
std::string text_of_options(LayerName, const SoftplusOptions& options);
}  // namespace detail

}  // namespace pleat::nn
