#pragma once

#include "pleat/nn/module.h"

namespace pleat::nn {

struct DropoutOptions {
  double p = 0.5;  ///< probability of an element, or a channel, to be set to 0
};

/// In training, sets elements to 0 and scales the others by 1 / (1 - p); in evaluation, does nothing. Draws
/// from default_generator(); see ops/elementwise/dropout.h. Throws ValueError unless 0 <= p <= 1.
class Dropout : public Module {
 public:
  explicit Dropout(DropoutOptions options = {});
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Dropout"; }
  std::string options_text() const override;

  DropoutOptions options;
};

/// The same for whole channels of x [N, C, spatial...] with `dims` spatial dimensions. forward throws
/// ShapeError for another rank.
template <int dims>
class ChannelDropout : public Module {
 public:
  explicit ChannelDropout(DropoutOptions options = {});
  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Dropout" + std::to_string(dims) + "d"; }
  std::string options_text() const override;

  DropoutOptions options;
};

using Dropout1d = ChannelDropout<1>;
using Dropout2d = ChannelDropout<2>;
using Dropout3d = ChannelDropout<3>;

}  // namespace pleat::nn
