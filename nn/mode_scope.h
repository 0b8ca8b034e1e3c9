#pragma once

#include <utility>
#include <vector>

#include "pleat/nn/module.h"

namespace pleat::nn {

enum class Mode { training, evaluation };

/// In its scope a network is in training or in evaluation mode. Afterwards each module is in its mode
/// before, also where they differ (frozen batch norms of a network that trains).
///
///   const nn::ModeScope scope(net, nn::Mode::evaluation);
class ModeScope {
 public:
  /// Refers to the network. Throws what Module::training throws.
  ModeScope(Module& net, Mode mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> before_;  ///< the outermost first
};

}  // namespace pleat::nn
