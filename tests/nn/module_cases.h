#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/nn/module.h"

/// Every module, in the configurations that it has code for. A row here is all that a module needs for the
/// tests of gradients, of copies and states, of GPUs, and of integers from all over int64.

namespace pleat::test {

struct ModuleCase {
  std::string name;  ///< the type, and what is special about it
  /// Makes it from integers, of which `usual` are some that make sense.
  std::vector<int64_t> usual;
  std::function<std::unique_ptr<nn::Module>(const std::vector<int64_t>&)> make_with;
  Shape input;          ///< of numbers from a normal distribution
  int64_t classes = 0;  ///< not 0: integers below it instead

  std::unique_ptr<nn::Module> make() const { return make_with(usual); }
  /// float64, or int64.
  Tensor make_input() const;
};

const std::vector<ModuleCase>& module_cases();

}  // namespace pleat::test
