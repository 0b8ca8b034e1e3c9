#include "pleat/autograd/unlisted.h"

#include <algorithm>
#include <mutex>

namespace pleat::autograd {
namespace {

std::mutex mutex;
std::vector<UnlistedGradient> notes;
std::atomic<bool> any{false};  ///< spares steps the lock

}  // namespace

void note_unlisted(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op) {
  const std::lock_guard lock(mutex);
  if (std::ranges::any_of(notes, [&](const auto& note) { return note.slot.lock() == leaf; })) return;
  notes.push_back({leaf, shape, op});
  any = true;
}

std::vector<UnlistedGradient> unlisted_gradients() {
  if (!any) return {};
  const std::lock_guard lock(mutex);
  std::erase_if(notes, [](const UnlistedGradient& note) {
    const std::shared_ptr<Slot> slot = note.slot.lock();
    return !slot || slot->listed || !slot->requires_grad;
  });
  any = !notes.empty();
  return notes;
}

}  // namespace pleat::autograd
