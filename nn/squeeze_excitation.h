#pragma once

#include "pleat/core/base/required.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/layer.h"

namespace pleat::nn {

// Whoever includes this need not compile them.
extern template AnyModule::AnyModule(ReLU&&);
extern template AnyModule::AnyModule(Sigmoid&&);

struct SqueezeExcitationOptions {
  Required<int64_t> input_channels;
  Required<int64_t> squeeze_channels;  ///< between the two layers
  AnyModule activation = ReLU{};
  AnyModule scale_activation = Sigmoid{};  ///< of the factors
};

/// x [N, C, H, W] times factors of its channels that two 1x1 convolutions make of the channels' means: x *
/// scale_activation(fc2(activation(fc1(mean of x)))). Hu et al., "Squeeze-and-excitation networks" (2018).
/// Members: fc1, fc2. Throws ValueError unless both numbers are at least 1; forward throws ShapeError.
struct SqueezeExcitation : Layer<"SqueezeExcitation", SqueezeExcitationOptions> {
  explicit SqueezeExcitation(const SqueezeExcitationOptions& o);
  Tensor forward(const Tensor& x) override;
  void members(Members& m) override;
  std::string options_text() const override;

  Conv2d fc1, fc2;
};

}  // namespace pleat::nn
