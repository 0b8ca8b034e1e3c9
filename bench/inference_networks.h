#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pleat/nn/containers.h"
#include "pleat/nn/module.h"

namespace pleat::bench {

/// A network with an input, whose running statistics are not those of a new one.
struct InferenceNetwork {
  std::shared_ptr<nn::Module> net;
  Tensor input;
};

/// Networks that `compare_torch.py --only inference` calls: convolutional of all kinds, recurrent,
/// transformers, mixers, of one and three dimensions, and small ones.
const std::vector<std::string>& inference_network_names();

/// In evaluation mode, on the CPU. Throws ValueError for another name.
InferenceNetwork make_inference_network(const std::string& name, int64_t batch);

struct VisionTransformerOptions {
  int64_t width, layers, feedforward;
  int64_t patch = 8;  ///< pixels of a side
  int64_t num_classes = 1000;
};
/// Dosovitskiy et al., arXiv:2010.11929: of 64 patches of a square image, with three heads.
nn::Sequential vision_transformer(const VisionTransformerOptions& options);

}  // namespace pleat::bench
