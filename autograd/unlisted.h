// Private header: not installed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pleat/autograd/node.h"

/// A module's parameter that its members() leaves out is neither trained nor saved. What is made to be
/// trained says so (Slot::parameter), what is listed is marked (Slot::listed), and backward notes a gradient
/// that arrives at the one without the other. The next step of an optimiser reads these notes.

namespace pleat::autograd {

struct UnlistedGradient {
  std::weak_ptr<Slot> slot;
  Shape shape;
  std::string op;  ///< the function that used the parameter
};

void note_unlisted(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op);

inline void note_if_unlisted(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op) {
  if (leaf->parameter && !leaf->listed.load(std::memory_order_relaxed)) [[unlikely]]
    note_unlisted(leaf, shape, op);
}

/// The notes whose parameter still exists and has not been listed since; the others are forgotten.
std::vector<UnlistedGradient> unlisted_gradients();

}  // namespace pleat::autograd
