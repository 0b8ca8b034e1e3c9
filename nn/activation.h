#pragma once

#include "pleat/nn/module.h"
#include "pleat/ops/elementwise/activation.h"
#include "pleat/ops/elementwise/math.h"
#include "pleat/ops/softmax/softmax.h"

/// Activation functions as modules; formulas: ops/elementwise/activation.h.

namespace pleat::nn {

struct ReLU : Module {
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::string type_name() const override { return "ReLU"; }
};
struct ReLU6 : Module {
  Tensor forward(const Tensor& x) override { return relu6(x); }
  std::string type_name() const override { return "ReLU6"; }
};
struct Sigmoid : Module {
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
  std::string type_name() const override { return "Sigmoid"; }
};
struct Tanh : Module {
  Tensor forward(const Tensor& x) override { return tanh(x); }
  std::string type_name() const override { return "Tanh"; }
};

struct HardtanhOptions {
  double min = -1, max = 1;
};
class Hardtanh : public Module {
 public:
  /// Throws ValueError unless min <= max.
  explicit Hardtanh(HardtanhOptions options_ = {});
  Tensor forward(const Tensor& x) override { return hardtanh(x, options.min, options.max); }
  std::string type_name() const override { return "Hardtanh"; }

  HardtanhOptions options;
};

struct LeakyReLUOptions {
  double negative_slope = 0.01;
};
class LeakyReLU : public Module {
 public:
  /// Throws ValueError unless the slope is finite.
  explicit LeakyReLU(LeakyReLUOptions options_ = {});
  Tensor forward(const Tensor& x) override { return leaky_relu(x, options.negative_slope); }
  std::string type_name() const override { return "LeakyReLU"; }

  LeakyReLUOptions options;
};

struct PReLUOptions {
  int64_t num_parameters = 1;  ///< 1, or the number of channels
  double init = 0.25;
};
/// x where positive, else weight * x; see prelu. weight [num_parameters] starts as `init`.
class PReLU : public Module {
 public:
  /// Throws ValueError unless num_parameters is at least 1 and init finite.
  explicit PReLU(PReLUOptions options = {});
  Tensor forward(const Tensor& x) override { return prelu(x, weight); }
  void members(Members& m) override { m("weight", weight); }
  std::string type_name() const override { return "PReLU"; }
  std::string options_text() const override;

  Tensor weight;
};

struct ELUOptions {
  double alpha = 1;
};
class ELU : public Module {
 public:
  /// Throws ValueError unless alpha is finite.
  explicit ELU(ELUOptions options_ = {});
  Tensor forward(const Tensor& x) override { return elu(x, options.alpha); }
  std::string type_name() const override { return "ELU"; }

  ELUOptions options;
};

struct SELU : Module {
  Tensor forward(const Tensor& x) override { return selu(x); }
  std::string type_name() const override { return "SELU"; }
};

struct CELUOptions {
  double alpha = 1;
};
class CELU : public Module {
 public:
  /// Throws ValueError unless alpha is finite and not 0.
  explicit CELU(CELUOptions options_ = {});
  Tensor forward(const Tensor& x) override { return celu(x, options.alpha); }
  std::string type_name() const override { return "CELU"; }

  CELUOptions options;
};

struct GLUOptions {
  int64_t dim = -1;
};
class GLU : public Module {
 public:
  explicit GLU(GLUOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return glu(x, options.dim); }
  std::string type_name() const override { return "GLU"; }

  GLUOptions options;
};

struct GELUOptions {
  GeluApproximation approximation = GeluApproximation::none;
};
class GELU : public Module {
 public:
  explicit GELU(GELUOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return gelu(x, options.approximation); }
  std::string type_name() const override { return "GELU"; }

  GELUOptions options;
};

class Softplus : public Module {
 public:
  /// Throws ValueError unless beta is above 0 and finite.
  explicit Softplus(SoftplusOptions options_ = {});
  Tensor forward(const Tensor& x) override { return softplus(x, options); }
  std::string type_name() const override { return "Softplus"; }

  SoftplusOptions options;
};

struct LogSigmoid : Module {
  Tensor forward(const Tensor& x) override { return log_sigmoid(x); }
  std::string type_name() const override { return "LogSigmoid"; }
};
struct Softsign : Module {
  Tensor forward(const Tensor& x) override { return softsign(x); }
  std::string type_name() const override { return "Softsign"; }
};
struct Tanhshrink : Module {
  Tensor forward(const Tensor& x) override { return tanhshrink(x); }
  std::string type_name() const override { return "Tanhshrink"; }
};
struct SiLU : Module {
  Tensor forward(const Tensor& x) override { return silu(x); }
  std::string type_name() const override { return "SiLU"; }
};
struct Mish : Module {
  Tensor forward(const Tensor& x) override { return mish(x); }
  std::string type_name() const override { return "Mish"; }
};
struct Hardswish : Module {
  Tensor forward(const Tensor& x) override { return hardswish(x); }
  std::string type_name() const override { return "Hardswish"; }
};
struct Hardsigmoid : Module {
  Tensor forward(const Tensor& x) override { return hardsigmoid(x); }
  std::string type_name() const override { return "Hardsigmoid"; }
};

struct SoftshrinkOptions {
  double lambd = 0.5;  ///< at least 0
};
class Softshrink : public Module {
 public:
  /// Throws ValueError unless lambd is at least 0.
  explicit Softshrink(SoftshrinkOptions options_ = {});
  Tensor forward(const Tensor& x) override { return softshrink(x, options.lambd); }
  std::string type_name() const override { return "Softshrink"; }

  SoftshrinkOptions options;
};

struct HardshrinkOptions {
  double lambd = 0.5;  ///< at least 0
};
class Hardshrink : public Module {
 public:
  /// Throws ValueError unless lambd is at least 0.
  explicit Hardshrink(HardshrinkOptions options_ = {});
  Tensor forward(const Tensor& x) override { return hardshrink(x, options.lambd); }
  std::string type_name() const override { return "Hardshrink"; }

  HardshrinkOptions options;
};

struct ThresholdOptions {
  double threshold = 0;
  double value = 0;  ///< of elements that are not above the threshold
};
class Threshold : public Module {
 public:
  /// Throws ValueError for a threshold of NaN.
  explicit Threshold(ThresholdOptions options_ = {});
  Tensor forward(const Tensor& x) override { return threshold(x, options.threshold, options.value); }
  std::string type_name() const override { return "Threshold"; }

  ThresholdOptions options;
};

struct SoftmaxOptions {
  int64_t dim = -1;
};
class Softmax : public Module {
 public:
  explicit Softmax(SoftmaxOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return softmax(x, options.dim); }
  std::string type_name() const override { return "Softmax"; }

  SoftmaxOptions options;
};
class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(SoftmaxOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, options.dim); }
  std::string type_name() const override { return "LogSoftmax"; }

  SoftmaxOptions options;
};
class Softmin : public Module {
 public:
  explicit Softmin(SoftmaxOptions options_ = {}) : options(options_) {}
  Tensor forward(const Tensor& x) override { return softmin(x, options.dim); }
  std::string type_name() const override { return "Softmin"; }

  SoftmaxOptions options;
};
/// softmax over the channels of [N, C, H, W] or [C, H, W]. Other ranks throw ShapeError.
struct Softmax2d : Module {
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Softmax2d"; }
};

}  // namespace pleat::nn
