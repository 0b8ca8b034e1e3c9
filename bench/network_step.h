#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pleat/core/tensor/dtype.h"

namespace pleat::bench {

/// A training step on noise: forward, loss, backward, update.
struct NetworkStep {
  std::function<void()> run;
  int64_t parameters;
};

/// Names of the networks, which scripts/torch_networks.py has, too.
const std::vector<std::string>& network_names();

/// Of a network of models/ on the default device; images and volumes are in `format`, half types are mixed
/// precision by Autocast. Throws ValueError for another name.
NetworkStep make_network_step(const std::string& name, int64_t batch, const std::string& format,
                              DType dtype = float32);

}  // namespace pleat::bench
