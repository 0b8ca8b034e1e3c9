#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pleat/nn/module.h"
#include "pleat/tests/fixture.h"

/// Modules against PyTorch's recorded results and gradients (tests/fixtures/recurrent.json).

namespace pleat::test {

using Named = std::map<std::string, Tensor>;

/// The tensor of this name; undefined where there is none.
Tensor find(const Named& tensors, const std::string& name);
/// All that are defined, one behind the other, as the fixtures have them.
Tensor joined(const std::vector<Tensor>& results);
/// Gives a module the recorded parameters and compares results, and gradients of inputs and parameters.
void check_module(const Json& c, nn::Module& module, const std::function<Tensor(const Named& inputs)>& run);

}  // namespace pleat::test
