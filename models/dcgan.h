#pragma once

#include <cstdint>

#include "pleat/nn/containers.h"

namespace pleat::models {

/// DCGAN (Radford et al., arXiv:1511.06434): noise [N, 100, 1, 1] to images [N, 3, 64, 64] from -1
/// to 1; `width` are the channels before the last layer ...
nn::Sequential dcgan_generator(int64_t width = 64);
/// ... and images to one number each [N, 1, 1, 1], above 0 for real ones.
nn::Sequential dcgan_discriminator(int64_t width = 64);

}  // namespace pleat::models
