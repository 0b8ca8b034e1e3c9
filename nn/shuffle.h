#pragma once

#include "pleat/core/base/required.h"
#include "pleat/nn/layer.h"
#include "pleat/ops/shape/rearrange.h"

/// Channels and pixels in another order; formulas and errors: ops/shape/rearrange.h.

namespace pleat::nn {

struct PixelShuffleOptions {
  Required<int64_t> upscale_factor;
};
using PixelShuffle = FunctionLayer<"PixelShuffle", pixel_shuffle, &PixelShuffleOptions::upscale_factor>;

struct PixelUnshuffleOptions {
  Required<int64_t> downscale_factor;
};
using PixelUnshuffle =
    FunctionLayer<"PixelUnshuffle", pixel_unshuffle, &PixelUnshuffleOptions::downscale_factor>;

struct ChannelShuffleOptions {
  Required<int64_t> groups;
};
using ChannelShuffle = FunctionLayer<"ChannelShuffle", channel_shuffle, &ChannelShuffleOptions::groups>;

}  // namespace pleat::nn
