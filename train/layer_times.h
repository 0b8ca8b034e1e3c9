#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/nn/module.h"
#include "pleat/ops/tune/tuner.h"

namespace pleat::train {

/// A layer of a network, with the times of its convolution.
struct LayerTimes {
  std::string path;  ///< "layer1.0.conv"
  std::string type;
  std::string options;  ///< "3, 16, kernel_size=3"
  Shape output;
  int64_t parameters = 0;
  /// By implementation: milliseconds of forward and of both gradients together, as far as it can
  /// compute all three; empty for layers that are no convolution.
  std::map<std::string, double> milliseconds = {};
};

/// The layers that a network calls for an input, those inside others only. Each convolution (not
/// transposed) is computed by every implementation (ops/conv/tune/tune.h); equal ones once. The
/// network is called in evaluation mode and off the tape, and is not changed.
std::vector<LayerTimes> time_layers(nn::Module& net, const Tensor& input,
                                    ops::TuneOptions how = {.samples = 3});

}  // namespace pleat::train
