// Private header: not installed.
#pragma once

#include <cstdint>

#include "pleat/nn/containers.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/norm.h"

namespace pleat::models {

struct ConvNorm {
  int64_t in, out, kernel = 3, stride = 1, groups = 1;
};

/// Appends a convolution without bias that keeps the size but for its stride, and a batch norm.
inline void add_conv_norm(nn::Sequential& net, const ConvNorm& c) {
  net.add(nn::Conv2d{{.in_channels = c.in,
                      .out_channels = c.out,
                      .kernel_size = c.kernel,
                      .stride = c.stride,
                      .padding = c.kernel / 2,
                      .groups = c.groups,
                      .bias = false}});
  net.add(nn::BatchNorm2d{{.num_features = c.out}});
}

}  // namespace pleat::models
