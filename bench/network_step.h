#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace pleat::bench {

/// A training step on noise, which compare_torch.py times: forward, loss, backward, update.
struct NetworkStep {
  std::function<void()> run;
  int64_t parameters;
};

/// Of a network of examples/common/, by the name that bench/torch_networks.py has for the same; images and
/// volumes are in `format`, on the default device. Throws ValueError for another name.
NetworkStep make_network_step(const std::string& name, int64_t batch, const std::string& format);

}  // namespace pleat::bench
