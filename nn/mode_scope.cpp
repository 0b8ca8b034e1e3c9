#include "pleat/nn/mode_scope.h"

namespace pleat::nn {

ModeScope::ModeScope(Module& net, Mode mode) {
  for (const auto& [name, module] : net.named_modules()) before_.emplace_back(module, module->training());
  net.train(mode == Mode::training);
}

ModeScope::~ModeScope() {
  // train() changes all that is inside.
  for (const auto& [module, training] : before_) module->train(training);
}

}  // namespace pleat::nn
