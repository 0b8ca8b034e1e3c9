#pragma once

#include <string>

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/shape/rearrange.h"

/// Channels and pixels in another order; formulas and errors: ops/shape/rearrange.h.

namespace pleat::nn {

struct PixelShuffleOptions {
  Required<int64_t> upscale_factor;
};
struct PixelShuffle : Layer<"PixelShuffle", PixelShuffleOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return pixel_shuffle(x, options.upscale_factor.get()); }
  std::string options_text() const override { return std::to_string(options.upscale_factor.get()); }
};

struct PixelUnshuffleOptions {
  Required<int64_t> downscale_factor;
};
struct PixelUnshuffle : Layer<"PixelUnshuffle", PixelUnshuffleOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return pixel_unshuffle(x, options.downscale_factor.get()); }
  std::string options_text() const override { return std::to_string(options.downscale_factor.get()); }
};

struct ChannelShuffleOptions {
  Required<int64_t> groups;
};
struct ChannelShuffle : Layer<"ChannelShuffle", ChannelShuffleOptions> {
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return channel_shuffle(x, options.groups.get()); }
  std::string options_text() const override { return std::to_string(options.groups.get()); }
};

}  // namespace pleat::nn
