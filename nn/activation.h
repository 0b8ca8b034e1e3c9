#pragma once

#include "pleat/autograd/functions/activation.h"
#include "pleat/autograd/functions/math.h"
#include "pleat/autograd/functions/softmax.h"
#include "pleat/nn/module.h"

/// Activation functions as modules; formulas: ops/elementwise/activation.h.

namespace pleat::nn {

struct ReLU : Module {
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::string type_name() const override { return "ReLU"; }
};
struct Sigmoid : Module {
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
  std::string type_name() const override { return "Sigmoid"; }
};
struct Tanh : Module {
  Tensor forward(const Tensor& x) override { return tanh(x); }
  std::string type_name() const override { return "Tanh"; }
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

}  // namespace pleat::nn
