// Private header: not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pleat/autograd/node.h"

namespace pleat::autograd {

/// A sum of gradients.
struct Accumulator {
  Tensor sum;
  Tensor more;  ///< that the receiver will add, see Node::takes_what_arrives

  void add(const Tensor& gradient, bool may_be_two = false);
  void settle() {
    if (more.defined()) add_now(std::exchange(more, Tensor()));
  }
  /// The sum, where it may be changed in place.
  Tensor changeable() const { return is_own() && !more.defined() ? sum : Tensor(); }

 private:
  bool is_own() const { return sum.defined() && sum.is_sole_owner() && sum.is_dense(); }
  void add_now(const Tensor& gradient);
};

/// What hooks make of a gradient.
Tensor hooked(const std::vector<Hook>& hooks, Tensor gradient);

/// Adds to the gradient that a tensor keeps.
void accumulate(Slot& slot, Tensor gradient);

/// The leaves of one backward() that have hooks or watchers: a hook is called with the whole gradient, a
/// watcher told when it is there. So it counts the ways on which something may come to such a leaf. In a
/// backward() inside of another one, watchers are told only which leaves it reaches.
class LeafGradients {
 public:
  explicit LeafGradients(bool inside) : inside_(inside) {}

  /// A way to a leaf. All that are known are to be found before they are passed.
  void find(const std::shared_ptr<Slot>& leaf);
  /// To be called after the ways of some nodes were found, `going_on` of which go on (Node::goes_on).
  void found(int64_t going_on);
  /// What came to a leaf before, where it may be changed in place.
  Tensor changeable(const std::shared_ptr<Slot>& leaf) const;
  /// Takes what came to a leaf.
  void deliver(const std::shared_ptr<Slot>& leaf, Tensor gradient);
  /// Something has come to a leaf on one of the ways, or will not.
  void pass(const std::shared_ptr<Slot>& leaf);
  /// The same for all ways of a node.
  void pass(const Node& node);
  void end() const;

 private:
  struct Leaf {
    std::shared_ptr<Slot> slot;
    int64_t ways = 0;
    bool has_hooks = false;
    Accumulator sum = {};  ///< of what came, where there are hooks
  };
  void complete_if_all_came(Leaf& leaf);

  const bool inside_;
  bool begun_ = false;
  int64_t going_on_ = 0;  ///< nodes still to come that may find further ways
  std::vector<std::unique_ptr<Leaf>>
      leaves_;  ///< as they were found: alike in all processes with this program
  std::unordered_map<const Slot*, Leaf*> leaf_of_;
  std::size_t told_ = 0;  ///< of leaves_: those whose watchers know that they are reached
  std::vector<std::shared_ptr<GradientWatcher>> watchers_;
};

}  // namespace pleat::autograd
