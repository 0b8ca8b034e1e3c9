// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/models/conv_norm.h"
#include "pleat/models/named_residual.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/flatten.h"
#include "pleat/nn/linear.h"
#include "pleat/nn/pool.h"

namespace pleat::models {

/// To `inside` channels, a depthwise convolution there, and back (Sandler et al., arXiv:1801.04381).
struct InvertedResidual {
  int64_t in, inside, out, kernel, stride;
  nn::AnyModule activation;       ///< behind the first two convolutions
  nn::AnyModule excitation = {};  ///< between the last two; may be absent
  double eps = 1e-5, momentum = 0.1;

  bool keeps_shape() const { return stride == 1 && in == out; }
};

/// Which convolutions stand with their norm and activation in a Sequential of their own.
enum class Nested : unsigned char { none, activated, all };

/// The layers of one, without what is added to them.
inline nn::Sequential layers_of(const InvertedResidual& block, Nested nested) {
  nn::Sequential body;
  const auto add = [&](ConvNorm c, const nn::AnyModule& activation) {
    c.eps = block.eps;
    c.momentum = block.momentum;
    if (nested == Nested::all || (nested == Nested::activated && activation.defined()))
      body.add(conv_norm(c, activation));
    else
      add_conv_norm(body, c, activation);
  };
  if (block.inside != block.in) add({block.in, block.inside, 1}, block.activation);
  add({block.inside, block.inside, block.kernel, block.stride, block.inside}, block.activation);
  if (block.excitation.defined()) body.add(block.excitation);
  add({block.inside, block.out, 1}, {});
  return body;
}

/// The layers by a name, and, where the shape stays, what comes in beside them.
inline nn::AnyModule published(const InvertedResidual& block, Nested nested, const char* name,
                               double drop = 0) {
  const nn::Sequential layers = layers_of(block, nested);
  if (block.keeps_shape()) return NamedResidual({.body = layers}, name, drop);
  return nn::Sequential{{name, layers}};
}

/// Features, their mean, and layers that classify it.
inline nn::Sequential classifying(const nn::Sequential& features, const nn::Sequential& classifier) {
  nn::Sequential net{{"features", features},
                     {"avgpool", nn::AdaptiveAvgPool2d{{.output_size = 1}}},
                     {"flatten", nn::Flatten{}},
                     {"classifier", classifier}};
  start_convolutions(net);
  start<nn::Linear>(net, [](const Tensor& w) { nn::init::normal_(w, 0, 0.01); });
  return net;
}

}  // namespace pleat::models
