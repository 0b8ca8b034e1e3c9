// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/init.h"
#include "pleat/nn/norm.h"

namespace pleat::models {

struct ConvNorm {
  int64_t in, out, kernel = 3, stride = 1, groups = 1;
  bool bias = false;
  double eps = 1e-5, momentum = 0.1;
};

/// A convolution that keeps the size but for its stride ...
inline nn::Conv2d conv_of(const ConvNorm& c) {
  return nn::Conv2d{{.in_channels = c.in,
                     .out_channels = c.out,
                     .kernel_size = c.kernel,
                     .stride = c.stride,
                     .padding = c.kernel / 2,
                     .groups = c.groups,
                     .bias = c.bias}};
}
/// ... and the batch norm behind it.
inline nn::BatchNorm2d norm_of(const ConvNorm& c) {
  return nn::BatchNorm2d{{.num_features = c.out, .eps = c.eps, .momentum = c.momentum}};
}

/// Appends both, and an activation.
inline void add_conv_norm(nn::Sequential& net, const ConvNorm& c, const nn::AnyModule& activation = {}) {
  net.add(conv_of(c));
  net.add(norm_of(c));
  if (activation.defined()) net.add(activation);
}
/// The same as a Sequential of their own.
inline nn::Sequential conv_norm(const ConvNorm& c, const nn::AnyModule& activation = {}) {
  nn::Sequential net;
  add_conv_norm(net, c, activation);
  return net;
}

/// Calls `weight` for the weight of each layer of class M in a network, and makes biases 0.
template <class M, class F>
void start(nn::Module& net, const F& weight) {
  net.apply([&](nn::Module& module) {
    auto* layer = dynamic_cast<M*>(&module);
    if (layer == nullptr) return;
    weight(layer->weight);
    if (layer->bias.defined()) nn::init::zeros_(layer->bias);
  });
}
/// Convolutions as those of He et al. (2015), normally distributed; `mode` as KaimingOptions has it.
inline void start_convolutions(nn::Module& net, const char* mode = "fan_out") {
  start<nn::ConvModule>(net, [&](const Tensor& w) { nn::init::kaiming_normal_(w, {.mode = mode}); });
}

}  // namespace pleat::models
