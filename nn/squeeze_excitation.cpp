#include "pleat/nn/squeeze_excitation.h"

#include "pleat/nn/options_text.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/pool/pool.h"

namespace pleat::nn {

template AnyModule::AnyModule(ReLU&&);
template AnyModule::AnyModule(Sigmoid&&);

SqueezeExcitation::SqueezeExcitation(const SqueezeExcitationOptions& o)
    : Layer(o),
      fc1{{.in_channels = o.input_channels, .out_channels = o.squeeze_channels, .kernel_size = 1}},
      fc2{{.in_channels = o.squeeze_channels, .out_channels = o.input_channels, .kernel_size = 1}} {}

Tensor SqueezeExcitation::forward(const Tensor& x) {
  const Tensor means = adaptive_avg_pool2d(x, {.output_size = 1});
  return x * options.scale_activation(fc2(options.activation(fc1(means))));
}

void SqueezeExcitation::members(Members& m) {
  m("fc1", fc1);
  m("fc2", fc2);
  m("activation", options.activation);
  m("scale_activation", options.scale_activation);
}

std::string SqueezeExcitation::options_text() const {
  return OptionsText()(options.input_channels)(options.squeeze_channels);
}

}  // namespace pleat::nn
