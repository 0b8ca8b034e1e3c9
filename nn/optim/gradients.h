// Private header: not installed.
#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::optim {

/// The gradients of parameters, each once: one that several parameters share must not be changed
/// twice.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& params);

/// Throws ValueError with the reason why none of them has a gradient.
[[noreturn]] void fail_without_gradients(const std::string& op, const std::vector<Tensor>& params);

/// The tensors of each device, in order.
std::vector<std::vector<Tensor>> by_device(const std::vector<Tensor>& tensors);

}  // namespace pleat::optim
