#pragma once

#include <string>

#include "pleat/core/base/required.h"
#include "pleat/nn/module.h"
#include "pleat/ops/shape/rearrange.h"

/// Channels and pixels in another order; formulas and errors: ops/shape/rearrange.h.

namespace pleat::nn {

struct PixelShuffleOptions {
  Required<int64_t> upscale_factor;
};
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(PixelShuffleOptions options_) : options(options_) {}
  Tensor forward(const Tensor& x) override { return pixel_shuffle(x, options.upscale_factor.get()); }
  std::string type_name() const override { return "PixelShuffle"; }
  std::string options_text() const override { return std::to_string(options.upscale_factor.get()); }

  PixelShuffleOptions options;
};

struct PixelUnshuffleOptions {
  Required<int64_t> downscale_factor;
};
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(PixelUnshuffleOptions options_) : options(options_) {}
  Tensor forward(const Tensor& x) override { return pixel_unshuffle(x, options.downscale_factor.get()); }
  std::string type_name() const override { return "PixelUnshuffle"; }
  std::string options_text() const override { return std::to_string(options.downscale_factor.get()); }

  PixelUnshuffleOptions options;
};

struct ChannelShuffleOptions {
  Required<int64_t> groups;
};
class ChannelShuffle : public Module {
 public:
  explicit ChannelShuffle(ChannelShuffleOptions options_) : options(options_) {}
  Tensor forward(const Tensor& x) override { return channel_shuffle(x, options.groups.get()); }
  std::string type_name() const override { return "ChannelShuffle"; }
  std::string options_text() const override { return std::to_string(options.groups.get()); }

  ChannelShuffleOptions options;
};

}  // namespace pleat::nn
