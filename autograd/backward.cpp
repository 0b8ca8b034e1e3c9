#include "pleat/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pleat/autograd/anomaly.h"
#include "pleat/autograd/autocast.h"
#include "pleat/autograd/functions/arithmetic.h"
#include "pleat/autograd/functions/copy.h"
#include "pleat/autograd/functions/reduce.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/unlisted.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/device/capture.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat {
namespace autograd {
namespace {

/// Where a requested gradient is caught: a leaf's slot, or an output of a node.
struct Place {
  const void* owner;
  std::size_t output;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  std::size_t operator()(const Place& place) const {
    return std::hash<const void*>()(place.owner) * 31 + place.output;
  }
};

Place place_of(const Edge& edge) {
  return edge.leaf ? Place{edge.leaf.get(), 0} : Place{edge.node.get(), edge.output};
}
Place place_of(const Slot& slot) { return slot.node ? Place{slot.node.get(), slot.output} : Place{&slot, 0}; }

/// A sum of gradients, which owns its elements once it has added anything.
struct Accumulator {
  Tensor sum;
  Tensor more;  ///< that somebody else will add, see Node::takes_what_arrives
  bool own = false;

  void add(const Tensor& gradient, bool may_be_two = false) {
    if (!sum.defined()) {
      sum = gradient;
    } else if (may_be_two && !own && !more.defined()) {
      more = gradient;
    } else {
      settle();
      add_now(gradient);
    }
  }
  void settle() {
    if (more.defined()) add_now(std::exchange(more, Tensor()));
  }

 private:
  void add_now(const Tensor& gradient) {
    if (own && !grad_enabled()) {
      ops::add_into(sum, sum, gradient);
    } else {
      sum = pleat::add(sum, gradient);
      own = true;
    }
  }
};

/// Tells the watchers of leaves how their gradients arrive in a pass. In a pass inside of another one, it
/// only tells which leaves it reaches.
class Watching {
 public:
  Watching(const std::vector<std::shared_ptr<Node>>& order, const std::vector<std::shared_ptr<Slot>>& roots,
           bool inside) {
    // In the order in which they are reached, which is the same in every process that runs this program.
    std::vector<std::pair<std::shared_ptr<GradientWatcher>, std::vector<std::size_t>>> reached;
    const auto count = [&](const std::shared_ptr<Slot>& leaf) {
      if (!leaf) return;
      const auto watcher = leaf->watcher.lock();
      if (!watcher || left_[leaf.get()]++ > 0) return;
      const auto is_this = [&](const auto& one) { return one.first == watcher; };
      const auto found = std::find_if(reached.begin(), reached.end(), is_this);
      auto& leaves = found != reached.end()
                         ? found->second
                         : reached.emplace_back(watcher, std::vector<std::size_t>()).second;
      leaves.push_back(leaf->watched_as);
    };
    bool others_may_come = false;
    for (const auto& root : roots) count(root);
    for (const auto& node : order) {
      others_may_come = others_may_come || node->calls_backward;
      for (const Edge& edge : node->edges) count(edge.leaf);
    }
    for (const auto& [watcher, leaves] : reached) {
      if (inside) {
        for (const std::size_t leaf : leaves) watcher->reached_inside(leaf);
      } else {
        watcher->begin(leaves, others_may_come);
        watchers_.push_back(watcher);
      }
    }
    if (inside) left_.clear();
  }

  /// The gradient of a leaf has come, or will not, on one of the ways to it.
  void passed(const std::shared_ptr<Slot>& leaf) {
    if (left_.empty() || !leaf) return;
    const auto found = left_.find(leaf.get());
    if (found != left_.end() && --found->second == 0)
      if (const auto watcher = leaf->watcher.lock()) watcher->complete(leaf->watched_as);
  }
  void passed(const std::vector<Edge>& edges) {
    if (left_.empty()) return;
    for (const Edge& edge : edges) passed(edge.leaf);
  }
  void end() const {
    for (const auto& watcher : watchers_) watcher->end();
  }

 private:
  std::unordered_map<const Slot*, int64_t> left_;  ///< ways to a leaf that are still to come
  std::vector<std::shared_ptr<GradientWatcher>> watchers_;
};

/// One pass backwards. Nodes are taken in falling order of their sequence numbers, which is an order in which
/// every consumer comes before its producer.
class BackwardPass {
 public:
  BackwardPass(BackwardOptions options, const std::vector<Tensor>* wanted) : options_(options) {
    if (wanted == nullptr) return;
    only_wanted_ = true;
    for (const Tensor& input : *wanted)
      if (const auto& slot = present_slot(input)) caught_[place_of(*slot)];
  }

  void start(const Tensor& output, Tensor gradient) {
    check_history("backward", output);
    const auto& slot = present_slot(output);
    check<AutogradError>(slot && slot->wants_grad(),
                         "backward: the tensor {} does not depend on anything that requires a gradient; call "
                         "set_requires_grad() on a leaf before computing, and compute outside of NoGrad",
                         output);
    if (!gradient.defined()) {
      check<AutogradError>(
          output.numel() == 1,
          "backward: the tensor {} has more than one element; give the gradient to start from, or "
          "reduce it (sum, mean) first",
          output);
      gradient = ones_like(output);
    }
    check_gradient("backward", gradient, output.shape(), output.dtype(), output.device());
    if (slot->node) {
      roots_.push_back(slot->node);
      deliver(nullptr, slot->node.get(), slot->output, gradient);
    } else {
      leaf_roots_.push_back(slot);
      leaf_gradients_.push_back(gradient);
    }
  }

  void run() {
    std::vector<std::shared_ptr<Node>> order = reachable();
    const std::unordered_set<const Node*> useful =
        only_wanted_ ? leading_to_wanted(order) : std::unordered_set<const Node*>();
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a->sequence > b->sequence; });
    std::optional<Watching> watching;
    if (!only_wanted_) watching.emplace(order, leaf_roots_, current_node() != nullptr);
    for (std::size_t i = 0; i < leaf_roots_.size(); ++i) {
      deliver(leaf_roots_[i], nullptr, 0, std::move(leaf_gradients_[i]));
      if (watching) watching->passed(leaf_roots_[i]);
    }
    for (std::shared_ptr<Node>& node : order) {
      visit(*node, useful);
      if (watching) watching->passed(node->edges);
      node.reset();  // frees early what nothing else holds
    }
    if (watching) watching->end();
  }

  Tensor caught(const Tensor& input) const {
    const auto& slot = present_slot(input);
    return slot ? caught_.at(place_of(*slot)).sum : Tensor();
  }

 private:
  std::vector<std::shared_ptr<Node>> reachable() const {
    std::unordered_set<const Node*> seen;
    std::vector<std::shared_ptr<Node>> order;
    for (const auto& root : roots_)
      if (seen.insert(root.get()).second) order.push_back(root);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const Edge& edge : order[i]->edges)
        if (edge.node && seen.insert(edge.node.get()).second) order.push_back(edge.node);
    return order;
  }

  std::unordered_set<const Node*> leading_to_wanted(std::vector<std::shared_ptr<Node>> order) const {
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a->sequence < b->sequence; });
    std::unordered_set<const Node*> useful;
    for (const auto& node : order)
      for (const Edge& edge : node->edges)
        if (edge.wanted() && (caught_.contains(place_of(edge)) || useful.contains(edge.node.get()))) {
          useful.insert(node.get());
          break;
        }
    return useful;
  }

  bool edge_needed(const Edge& edge, const std::unordered_set<const Node*>& useful) const {
    if (!edge.wanted()) return false;
    return !only_wanted_ || caught_.contains(place_of(edge)) || useful.contains(edge.node.get());
  }

  void visit(Node& node, const std::unordered_set<const Node*>& useful) {
    const auto found = pending_.find(&node);
    if (found == pending_.end()) return;
    Grads gradients(node.outputs.size());
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (is_seen(node, k)) found->second[k].settle();
      gradients[k] = std::move(found->second[k].sum);
    }
    const Tensor more = std::move(found->second[0].more);
    pending_.erase(found);
    for (std::size_t k = 0; k < gradients.size(); ++k) finish_output(node, k, gradients[k]);
    if (only_wanted_ && !useful.contains(&node)) return;

    check<AutogradError>(
        !node.released,
        "backward: {} was released by an earlier backward through it; pass retain_graph = true to "
        "that one",
        node.name);
    for (std::size_t k = 0; k < gradients.size(); ++k)
      if (!gradients[k].defined() && !node.takes_what_arrives)
        gradients[k] =
            zeros(node.outputs[k].shape, {.dtype = node.outputs[k].dtype, .device = node.outputs[k].device});
    if (more.defined()) gradients.push_back(more);
    const RecordBackward range(node.name, node.sequence, gradients);
    for (const Node::Group& group : node.groups) run_group(node, group, gradients, useful);
    if (!options_.retain_graph && !options_.create_graph) node.release();
  }

  /// Whether somebody looks at the gradient of a node's output.
  bool is_seen(const Node& node, std::size_t k) const {
    const Node::Output& output = node.outputs[k];
    return !output.hooks.empty() || !output.retain.expired() || caught_.contains(Place{&node, k}) ||
           anomaly_mode();
  }

  void finish_output(Node& node, std::size_t k, Tensor& gradient) {
    if (!gradient.defined()) return;
    const Node::Output& output = node.outputs[k];
    gradient = hooked(output.hooks, std::move(gradient));
    if (const auto slot = output.retain.lock()) accumulate(*slot, gradient);
    const auto wanted = caught_.find(Place{&node, k});
    if (wanted != caught_.end()) wanted->second.add(gradient);
  }

  /// In the scopes of the forward call, but for Autocast: that call has chosen the types.
  static Grads run_closure(Node& node, const Node::Group& group, const Grads& gradients, const Needs& needs) {
    const UseScopes scopes(node.scopes);
    const Autocast as_outside{float16, {.enabled = false}};
    Node*& current = current_node();
    Node* const outer = current;
    current = &node;
    try {
      Grads results = group.backward(gradients, needs);
      current = outer;
      return results;
    } catch (...) {
      current = outer;
      throw;
    }
  }

  void run_group(Node& node, const Node::Group& group, const Grads& gradients,
                 const std::unordered_set<const Node*>& useful) {
    std::vector<bool> wanted(group.edges);
    for (std::size_t i = 0; i < group.edges; ++i)
      wanted[i] = edge_needed(node.edges[group.first_edge + i], useful);
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
    const Needs needs(wanted);
    Grads results = run_closure(node, group, gradients, needs);
    check<AutogradError>(
        results.size() == group.edges,
        "{}: its backward returned {} gradients for {} inputs; return one each (undefined for zero)",
        node.name, results.size(), group.edges);
    for (std::size_t i = 0; i < group.edges; ++i) {
      if (!wanted[i] || !results[i].defined()) continue;
      const Edge& edge = node.edges[group.first_edge + i];
      Tensor gradient = fitted(node, i, edge, std::move(results[i]));
      results[i] = {};
      if (anomaly_mode()) check_no_nan(node.name + " (backward)", "gave", {gradient});
      if (edge.leaf && !only_wanted_) note_if_unlisted(edge.leaf, edge.shape, node.name);
      deliver(edge.leaf, edge.node.get(), edge.output, std::move(gradient));
    }
  }

  /// Undoes broadcasting and type promotion of an input, and checks what remains.
  static Tensor fitted(const Node& node, std::size_t input, const Edge& edge, Tensor gradient) {
    if (gradient.shape() != edge.shape) gradient = sum_to(gradient, edge.shape);
    if (gradient.dtype() != edge.dtype) gradient = gradient.to(edge.dtype);
    check<DeviceError>(gradient.device() == edge.device,
                       "{}: its backward returned the gradient of input {} on {}, the input is on {}",
                       node.name, input, gradient.device(), edge.device);
    return gradient;
  }

  void deliver(const std::shared_ptr<Slot>& leaf, Node* node, std::size_t output, Tensor gradient) {
    if (node != nullptr) {
      auto& sums = pending_[node];
      sums.resize(node->outputs.size());
      const bool may_be_two = node->takes_what_arrives && node->outputs.size() == 1 && !grad_enabled();
      sums[output].add(gradient, may_be_two);
      return;
    }
    if (only_wanted_) {
      const auto wanted = caught_.find(Place{leaf.get(), 0});
      if (wanted != caught_.end()) wanted->second.add(hooked(leaf->hooks, std::move(gradient)));
      return;
    }
    accumulate(*leaf, hooked(leaf->hooks, std::move(gradient)));
  }

  static Tensor hooked(const std::vector<Hook>& hooks, Tensor gradient) {
    for (const Hook& hook : hooks) {
      const Tensor replaced = hook(gradient);
      if (!replaced.defined()) continue;
      check_gradient("register_hook: what the hook returned", replaced, gradient.shape(), gradient.dtype(),
                     gradient.device());
      gradient = replaced;
    }
    return gradient;
  }

  static void accumulate(Slot& leaf, Tensor gradient) {
    Capture* const capture = Capture::current();
    if (capture != nullptr && leaf.grad.defined() && !capture->has_gradient(leaf.grad.impl()))
      capture->refuse(
          "backward",
          "it adds to gradients from before the graph; call zero_grad() in the captured function");
    if (grad_enabled()) {
      leaf.grad = leaf.grad.defined() ? add(leaf.grad, gradient) : gradient;
    } else if (leaf.grad.defined()) {
      ops::add_into(leaf.grad, leaf.grad, gradient);
    } else {
      // Two leaves must not share one gradient: it is changed in place later.
      const bool sole_owner = gradient.is_sole_owner() && gradient.is_dense();
      leaf.grad = sole_owner ? gradient.detach() : ops::copy(gradient);
    }
    if (capture != nullptr) capture->add_gradient(leaf.grad.impl());
  }

  BackwardOptions options_;
  bool only_wanted_ = false;
  std::unordered_map<Place, Accumulator, PlaceHash> caught_;
  std::unordered_map<Node*, std::vector<Accumulator>> pending_;
  std::vector<std::shared_ptr<Node>> roots_;
  std::vector<std::shared_ptr<Slot>> leaf_roots_;  ///< outputs that are leaves, and their gradients
  Grads leaf_gradients_;
};

void run_backward(BackwardPass& pass, const std::vector<Tensor>& outputs, const Grads& gradients) {
  check<ValueError>(gradients.empty() || gradients.size() == outputs.size(),
                    "backward: {} gradients for {} outputs; give one each, or none", gradients.size(),
                    outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    pass.start(outputs[i], gradients.empty() ? Tensor() : gradients[i]);
  const Autocast as_outside{float16, {.enabled = false}};  // the forward has chosen the types
  pass.run();
}

}  // namespace
}  // namespace autograd

void backward(const std::vector<Tensor>& outputs, const Grads& gradients, BackwardOptions options) {
  const GradMode mode(options.create_graph);
  autograd::BackwardPass pass(options, nullptr);
  autograd::run_backward(pass, outputs, gradients);
}

Grads grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const Grads& gradients,
           BackwardOptions options) {
  const GradMode mode(options.create_graph);
  autograd::BackwardPass pass(options, &inputs);
  autograd::run_backward(pass, outputs, gradients);
  Grads results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    results.push_back(pass.caught(inputs[i]));
    check<AutogradError>(
        results.back().defined() || options.allow_unused,
        "grad: the outputs do not depend on input {}, {}; pass allow_unused = true to get an "
        "undefined Tensor for it",
        i, inputs[i]);
  }
  return results;
}

}  // namespace pleat
