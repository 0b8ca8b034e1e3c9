#include "pleat/models/dcgan.h"

#include "pleat/core/base/checked_math.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/conv.h"
#include "pleat/nn/norm.h"

namespace pleat::models {
nn::Sequential dcgan_generator(int64_t width) {
  nn::Sequential net;
  int64_t in = 100;
  const int64_t widest = checked_multiply(8, width, "dcgan_generator");
  for (const int64_t out : {widest, 4 * width, 2 * width, width, int64_t{3}}) {
    const bool first = in == 100;
    net.add(nn::ConvTranspose2d{{.in_channels = in,
                                 .out_channels = out,
                                 .kernel_size = 4,
                                 .stride = first ? 1 : 2,
                                 .padding = first ? 0 : 1,
                                 .bias = false}});
    if (out > 3) {
      net.add(nn::BatchNorm2d{{.num_features = out}});
      net.add(nn::ReLU{});
    }
    in = out;
  }
  net.add(nn::Tanh{});
  return net;
}

nn::Sequential dcgan_discriminator(int64_t width) {
  nn::Sequential net;
  int64_t in = 3;
  const int64_t widest = checked_multiply(8, width, "dcgan_discriminator");
  for (const int64_t out : {width, 2 * width, 4 * width, widest, int64_t{1}}) {
    net.add(nn::Conv2d{{.in_channels = in,
                        .out_channels = out,
                        .kernel_size = 4,
                        .stride = out > 1 ? 2 : 1,
                        .padding = out > 1 ? 1 : 0,
                        .bias = false}});
    if (out > width) net.add(nn::BatchNorm2d{{.num_features = out}});
    if (out > 1) net.add(nn::LeakyReLU{{.negative_slope = 0.2}});
    in = out;
  }
  return net;
}

}  // namespace pleat::models
