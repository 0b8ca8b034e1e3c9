// Private header: not installed.
#pragma once

#include <vector>

#include "pleat/core/tensor.h"

namespace pleat::optim {

/// The gradients that parameters have, each once: what several parameters share must not be changed twice.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& params);

/// The tensors of each device, in order.
std::vector<std::vector<Tensor>> by_device(const std::vector<Tensor>& tensors);

}  // namespace pleat::optim
