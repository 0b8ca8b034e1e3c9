// Private header: not installed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "pleat/core/tensor/tensor.h"

namespace pleat::autograd {

/// Is told how the gradients of some leaves arrive in a backward(), for those who pass them on while it is
/// still under way (dist/). Calls come from the thread of that backward(). Gradients that grad() returns are
/// not told.
class GradientWatcher {
 public:
  virtual ~GradientWatcher() = default;

  /// A backward() begins that will reach these leaves, by their numbers. `others_may_come`: some of its
  /// functions are computed again (checkpoint()), which may reach others.
  virtual void begin(const std::vector<std::size_t>& reached, bool others_may_come) = 0;
  /// All gradients of a leaf that were to come in this backward() have been accumulated.
  virtual void complete(std::size_t leaf) = 0;
  /// A function that is computed again, or a backward() inside of this one, has reached another leaf.
  virtual void reached_inside(std::size_t leaf) = 0;
  /// It is over. Is not called when it ended by an exception.
  virtual void end() = 0;
};

/// Tells `watcher`, as long as it exists, of a leaf under a number. Throws ValueError when another one is
/// told.
void watch_gradient(const Tensor& leaf, const std::shared_ptr<GradientWatcher>& watcher, std::size_t number);

}  // namespace pleat::autograd
