#include "pleat/models/efficientnet.h"

#include <cmath>
#include <vector>

#include "pleat/models/inverted_residual.h"
#include "pleat/nn/activation.h"
#include "pleat/nn/dropout.h"
#include "pleat/nn/squeeze_excitation.h"

namespace pleat::models {

nn::Sequential imagenet::efficientnet_b0(Options options) {
  struct Stage {
    int64_t expansion, kernel, stride, out, blocks;
  };
  nn::Sequential features;
  features.add(conv_norm({3, 32, 3, 2}, nn::SiLU{}));
  int64_t in = 32;
  int before = 0;  // blocks, of 16
  for (const Stage& s : std::vector<Stage>{{1, 3, 1, 16, 1},
                                           {6, 3, 2, 24, 2},
                                           {6, 5, 2, 40, 2},
                                           {6, 3, 2, 80, 3},
                                           {6, 5, 1, 112, 3},
                                           {6, 5, 2, 192, 4},
                                           {6, 3, 1, 320, 1}}) {
    nn::Sequential stage;
    for (int64_t i = 0; i < s.blocks; ++i, in = s.out) {
      const int64_t inside = in * s.expansion;
      const nn::SqueezeExcitation excitation{
          {.input_channels = inside, .squeeze_channels = in / 4, .activation = nn::SiLU{}}};
      stage.add(published({in, inside, s.out, s.kernel, i == 0 ? s.stride : 1, nn::SiLU{}, excitation},
                          Nested::all, "block", 0.2 * before++ / 16));
    }
    features.add(stage);
  }
  features.add(conv_norm({in, 1280, 1}, nn::SiLU{}));
  nn::Sequential net = classifying(
      features, nn::Sequential{nn::Dropout{{.p = 0.2}},
                               nn::Linear{{.in_features = 1280, .out_features = options.num_classes}}});
  const double bound = 1 / std::sqrt(static_cast<double>(options.num_classes));
  start<nn::Linear>(net, [&](const Tensor& w) { nn::init::uniform_(w, -bound, bound); });
  return net;
}

}  // namespace pleat::models
