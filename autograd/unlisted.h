// Private header: not installed.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "pleat/autograd/node.h"

/// A module's parameter that its members() leaves out is neither trained nor saved. What is made to be
/// trained says so (Slot::parameter), what is listed is marked (Slot::listed), and backward tells of a
/// gradient that arrives at the one without the other. nn/listing.h takes notes.

namespace pleat::autograd {

/// `op` is the function that used the parameter.
using TakesUnlisted = void(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op);
inline std::atomic<TakesUnlisted*> takes_unlisted{nullptr};

inline void tell_if_unlisted(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op) {
  if (leaf->parameter && !leaf->listed.load(std::memory_order_relaxed)) [[unlikely]]
    if (TakesUnlisted* take = takes_unlisted) take(leaf, shape, op);
}

}  // namespace pleat::autograd
