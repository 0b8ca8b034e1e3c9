#include "pleat/autograd/leaf_gradients.h"

#include <algorithm>

#include "pleat/autograd/functions.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/tensor/copy.h"

namespace pleat::autograd {

void Accumulator::add(const Tensor& gradient, bool may_be_two) {
  if (!sum.defined()) {
    sum = gradient;
  } else if (may_be_two && !more.defined()) {
    more = gradient;
  } else {
    settle();
    add_now(gradient);
  }
}

void Accumulator::add_now(const Tensor& gradient) {
  if (!grad_enabled() && is_own()) {
    add_(sum, gradient);
  } else {
    sum = pleat::add(sum, gradient);
  }
}

Tensor hooked(const std::vector<Hook>& hooks, Tensor gradient) {
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    const Hook hook = hooks[i];  // it may register another one
    const Tensor replaced = hook(gradient);
    if (!replaced.defined()) continue;
    check_gradient("register_hook: what the hook returned", replaced, gradient.shape(), gradient.dtype(),
                   gradient.device());
    gradient = replaced;
  }
  return gradient;
}

void accumulate(Slot& slot, Tensor gradient) {
  Capture* const capture = Capture::current();
  if (capture != nullptr && slot.grad.defined() && !capture->has_gradient(slot.grad.impl()))
    capture->refuse("backward",
                    "it adds to gradients from before the graph; call zero_grad() in the captured function");
  if (grad_enabled()) {
    slot.grad = slot.grad.defined() ? add(slot.grad, gradient) : std::move(gradient);
  } else if (slot.grad.defined()) {
    add_(slot.grad, gradient);
  } else {
    // Two leaves must not share one gradient: it is changed in place later.
    const bool sole_owner = gradient.is_sole_owner() && gradient.is_dense();
    slot.grad = sole_owner ? gradient.detach() : ops::copy(gradient);
  }
  if (capture != nullptr) capture->add_gradient(slot.grad.impl());
}

void LeafGradients::find(const std::shared_ptr<Slot>& leaf) {
  if (!leaf || (leaf->hooks.empty() && leaf->watcher.expired())) return;
  Leaf*& known = leaf_of_[leaf.get()];
  if (known == nullptr) {
    leaves_.push_back(std::make_unique<Leaf>(Leaf{.slot = leaf, .has_hooks = !leaf->hooks.empty()}));
    known = leaves_.back().get();
  }
  ++known->ways;
}

void LeafGradients::found(int64_t going_on) {
  going_on_ += going_on;
  std::vector<std::pair<std::shared_ptr<GradientWatcher>, std::vector<std::size_t>>> reached;
  for (; told_ < leaves_.size(); ++told_) {
    const Slot& leaf = *leaves_[told_]->slot;
    const auto watcher = leaf.watcher.lock();
    if (!watcher) continue;
    const auto is_this = [&](const auto& one) { return one.first == watcher; };
    auto one = std::ranges::find_if(reached, is_this);
    if (one == reached.end()) one = reached.insert(one, {watcher, {}});
    one->second.push_back(leaf.watched_as);
  }
  for (const auto& [watcher, leaves] : reached) {
    if (inside_ || begun_) {
      for (const std::size_t leaf : leaves) watcher->reached_inside(leaf);
    } else {
      watcher->begin(leaves, going_on_ > 0);
      watchers_.push_back(watcher);
    }
  }
  begun_ = true;
}

Tensor LeafGradients::changeable(const std::shared_ptr<Slot>& leaf) const {
  const auto known = leaf_of_.find(leaf.get());
  if (known != leaf_of_.end() && known->second->has_hooks) return known->second->sum.changeable();
  const Tensor& gradient = leaf->grad;
  return gradient.defined() && gradient.is_dense() && Capture::current() == nullptr ? gradient : Tensor();
}

void LeafGradients::deliver(const std::shared_ptr<Slot>& leaf, Tensor gradient) {
  const auto known = leaf_of_.find(leaf.get());
  if (known != leaf_of_.end() && known->second->has_hooks)
    known->second->sum.add(gradient);
  else
    accumulate(*leaf, std::move(gradient));
}

void LeafGradients::pass(const std::shared_ptr<Slot>& leaf) {
  if (leaves_.empty() || !leaf) return;
  const auto known = leaf_of_.find(leaf.get());
  if (known == leaf_of_.end()) return;
  --known->second->ways;
  complete_if_all_came(*known->second);
}

void LeafGradients::pass(const Node& node) {
  if (!leaves_.empty())
    for (const Edge& edge : node.edges) pass(edge.leaf);
  if (node.goes_on && --going_on_ == 0)
    for (const auto& leaf : leaves_) complete_if_all_came(*leaf);
}

void LeafGradients::complete_if_all_came(Leaf& leaf) {
  if (leaf.ways > 0 || going_on_ > 0) return;
  if (leaf.sum.sum.defined())
    accumulate(*leaf.slot, hooked(leaf.slot->hooks, std::exchange(leaf.sum.sum, Tensor())));
  if (inside_) return;
  if (const auto watcher = leaf.slot->watcher.lock()) watcher->complete(leaf.slot->watched_as);
}

void LeafGradients::end() const {
  for (const auto& watcher : watchers_) watcher->end();
}

}  // namespace pleat::autograd
