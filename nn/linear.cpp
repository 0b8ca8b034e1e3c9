#include "pleat/nn/linear.h"

#include <cmath>

#include "pleat/autograd/functions/matmul.h"
#include "pleat/core/create.h"
#include "pleat/core/format.h"
#include "pleat/nn/init.h"

namespace pleat::nn {

Linear::Linear(LinearOptions o) : options{.precision = o.precision} {
  check<ValueError>(o.in_features.get() >= 1 && o.out_features.get() >= 1,
                    "Linear: in_features and out_features must be at least 1, got {} and {}",
                    o.in_features.get(), o.out_features.get());
  weight = empty({o.out_features, o.in_features});
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!o.bias) return;
  const double bound = 1 / std::sqrt(static_cast<double>(o.in_features.get()));
  bias = empty({o.out_features});
  init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias, options); }

void Linear::members(Members& m) {
  m("weight", weight);
  m("bias", bias);
}

std::string Linear::options_text() const {
  return fmt::format("{}, {}{}", weight.size(1), weight.size(0), bias.defined() ? "" : ", bias=false");
}

}  // namespace pleat::nn
