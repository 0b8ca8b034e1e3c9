#pragma once

#include <string>

#include "pleat/pleat.h"

namespace pleat::test {

/// With running statistics as a trained network has them: those of a new one would make norms the identity.
template <class Net>
Net trained(Net net) {
  manual_seed(3);
  for (const auto& [name, buffer] : net.named_buffers()) {
    if (name.find("running_var") != std::string::npos) copy_(buffer, rand(buffer.shape()) * 0.5 + 0.5);
    if (name.find("running_mean") != std::string::npos) copy_(buffer, randn(buffer.shape()) * 0.2);
  }
  for (const auto& [name, parameter] : net.named_parameters())
    if (name.find("bias") != std::string::npos) copy_(parameter.detach(), randn(parameter.shape()) * 0.1);
  net.eval();
  return net;
}

}  // namespace pleat::test
