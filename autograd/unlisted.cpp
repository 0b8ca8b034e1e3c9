#include "pleat/autograd/unlisted.h"

#include <algorithm>
#include <mutex>

#include "pleat/core/base/fork.h"

namespace pleat::autograd {
namespace {

struct Notes {
  ForkMutex<std::mutex> mutex;
  std::vector<UnlistedGradient> list;
};
Notes& notes() {
  static auto& all = *new Notes;
  return all;
}
std::atomic<bool> any{false};  ///< spares steps the lock

}  // namespace

void note_unlisted(const std::shared_ptr<Slot>& leaf, const Shape& shape, const std::string& op) {
  const std::lock_guard lock(notes().mutex);
  if (std::ranges::any_of(notes().list, [&](const auto& note) { return note.slot.lock() == leaf; })) return;
  notes().list.push_back({leaf, shape, op});
  any = true;
}

std::vector<UnlistedGradient> unlisted_gradients() {
  if (!any) return {};
  const std::lock_guard lock(notes().mutex);
  std::erase_if(notes().list, [](const UnlistedGradient& note) {
    const std::shared_ptr<Slot> slot = note.slot.lock();
    return !slot || slot->listed || !slot->requires_grad;
  });
  any = !notes().list.empty();
  return notes().list;
}

}  // namespace pleat::autograd
