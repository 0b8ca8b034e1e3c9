#include "pleat/nn/linear.h"

#include <cmath>

#include "pleat/autograd/functions/matmul.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/nn/init.h"

namespace pleat::nn {

Linear::Linear(LinearOptions options) {
  check<ValueError>(options.in_features.get() >= 1 && options.out_features.get() >= 1,
                    "Linear: in_features and out_features must be at least 1, got {} and {}",
                    options.in_features.get(), options.out_features.get());
  weight = empty({options.out_features, options.in_features});
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!options.bias) return;
  const double bound = 1 / std::sqrt(static_cast<double>(options.in_features.get()));
  bias = empty({options.out_features});
  init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }

void Linear::members(Members& m) {
  m("weight", weight);
  m("bias", bias);
}

std::string Linear::options_text() const {
  return fmt::format("{}, {}{}", weight.size(1), weight.size(0), bias.defined() ? "" : ", bias=false");
}

}  // namespace pleat::nn
