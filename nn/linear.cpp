#include "pleat/nn/linear.h"

#include <cmath>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/create.h"
#include "pleat/nn/init.h"
#include "pleat/nn/options_text.h"
#include "pleat/ops/matmul/matmul.h"

namespace pleat::nn {

Linear::Linear(LinearOptions o) : WeightAndBias(MatmulOptions{.precision = o.precision}) {
  const int64_t in = o.in_features, out = o.out_features;
  check<ValueError>(in >= 1 && out >= 1,
                    "Linear: in_features and out_features must be at least 1, got {} and {}", in, out);
  weight = parameter(empty({out, in}));
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!o.bias) return;
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  bias = parameter(empty({out}));
  init::uniform_(bias, -bound, bound);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias, options); }

std::string Linear::options_text() const {
  return OptionsText()(weight.size(1))(weight.size(0))("bias", bias.defined(), true);
}

}  // namespace pleat::nn
