#pragma once

#include "pleat/nn/layer.h"

namespace pleat::nn {

struct DropoutOptions {
  double p = 0.5;  ///< probability of an element, or a channel, to be set to 0
};

/// In training, sets elements to 0 and scales the others by 1 / (1 - p); in evaluation, does nothing. Draws
/// from default_generator(); see ops/elementwise/dropout.h. Throws ValueError unless 0 <= p <= 1.
struct Dropout : Layer<"Dropout", DropoutOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};

/// The same for whole channels of x [N, C, spatial...] with `dims` spatial dimensions. forward throws
/// ShapeError for another rank.
template <ClassName name, int dims>
struct ChannelDropout : Layer<name, DropoutOptions> {
  using Layer<name, DropoutOptions>::Layer;
  Tensor forward(const Tensor& x) override;
};

using Dropout1d = ChannelDropout<"Dropout1d", 1>;
using Dropout2d = ChannelDropout<"Dropout2d", 2>;
using Dropout3d = ChannelDropout<"Dropout3d", 3>;

/// Sets whole samples of x [N, ...] to 0 with probability p and scales the others, in training: where x is
/// what a residual block adds, the block is left out for some samples. Huang et al., "Deep networks with
/// stochastic depth" (2016). forward throws ShapeError for a scalar.
struct StochasticDepth : Layer<"StochasticDepth", DropoutOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};

namespace detail {
void check_options(LayerName layer, const DropoutOptions& options);
std::string text_of_options(LayerName, const DropoutOptions& options);
}  // namespace detail

}  // namespace pleat::nn
