#include "pleat/autograd/backward.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pleat/autograd/anomaly.h"
#include "pleat/autograd/autocast.h"
#include "pleat/autograd/functions.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/leaf_gradients.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/unlisted.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/tensor/create.h"

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

/// Puts a value in the place of a variable's, for a scope.
template <class T>
class Exchanged {
 public:
  Exchanged(T& variable, T value) : variable_(variable), outer_(std::exchange(variable, value)) {}
  ~Exchanged() { variable_ = outer_; }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  T& variable_;
  T outer_;
};

/// One pass backwards. Nodes are taken in falling order of their sequence numbers, which is an order in which
/// every consumer comes before its producer.
class BackwardPass {
 public:
  /// Accumulates the gradients of leaves, of all or of those that are wanted, or catches what is wanted.
  BackwardPass(const BackwardOptions& options, const std::vector<Tensor>& wanted, bool accumulates)
      : options_(options), accumulates_(accumulates), only_wanted_(!accumulates || !wanted.empty()) {
    for (const Tensor& input : wanted)
      if (const auto& slot = present_slot(input); slot && caught_.try_emplace(place_of(*slot)).second)
        if (!slot->node) wanted_leaves_.push_back(slot);
  }

  /// The one whose closure runs in this thread; null outside backward.
  static BackwardPass*& running() {
    thread_local BackwardPass* pass = nullptr;
    return pass;
  }

  void start(const Tensor& output, Tensor gradient) {
    check_history("backward", output);
    const auto& slot = present_slot(output);
    check<AutogradError>(
        slot && slot->wants_grad(),
        "backward: the tensor {} does not depend on anything that requires a gradient; call "
        "set_requires_grad() on a leaf before computing, and compute outside of NoGrad, where record() "
        "does nothing",
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
    if (accumulates_) leaves_.emplace(current_node() != nullptr);
    reach(0);
    if (leaves_) {
      check_wanted_are_found();
      leaves_->end();
      return;
    }
    for (const auto& leaf : wanted_leaves_) {
      Tensor& sum = caught_.at(place_of(*leaf)).sum;
      if (sum.defined()) sum = hooked(leaf->hooks, sum);
    }
  }

  /// See go_on_backward(). Nodes of before are left to run().
  void go_on(const Tensor& output, const Tensor& gradient, uint64_t sequence) {
    start(output, gradient);
    reach(sequence);
  }

  /// What came to the input of which a closure now computes the gradient, where it may be changed in place.
  Tensor changeable_sum() const {
    if (edge_ == nullptr || grad_enabled() || anomaly_mode()) return {};
    if (edge_->node) {
      const auto found = pending_.find(edge_->node.get());
      return found == pending_.end() ? Tensor() : found->second[edge_->output].changeable();
    }
    if (!leaves_) return {};
    tell_if_unlisted(edge_->leaf, edge_->shape, current_node()->name);
    return leaves_->changeable(edge_->leaf);
  }

  Tensor caught(const Tensor& input) const {
    const auto& slot = present_slot(input);
    return slot ? caught_.at(place_of(*slot)).sum : Tensor();
  }

 private:
  /// Visits the nodes above a sequence number, from the outputs that were started since the last call on.
  void reach(uint64_t sequence) {
    find_nodes();
    for (std::size_t i = 0; i < leaf_roots_.size(); ++i) {
      deliver(leaf_roots_[i], nullptr, 0, std::move(leaf_gradients_[i]));
      if (leaves_) leaves_->pass(leaf_roots_[i]);
    }
    leaf_roots_.clear();
    leaf_gradients_.clear();
    while (!order_.empty() && order_.back()->sequence > sequence) {
      const std::shared_ptr<Node> node = std::move(order_.back());
      order_.pop_back();
      visit(*node);
      if (leaves_) leaves_->pass(*node);
      // Another node may come to lie where this one was.
      seen_.erase(node.get());
      useful_.erase(node.get());
    }
  }

  /// Adds to order_ what the outputs that were started are computed from.
  void find_nodes() {
    std::vector<std::shared_ptr<Node>> nodes;
    for (const auto& root : roots_)
      if (seen_.insert(root.get()).second) nodes.push_back(root);
    roots_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const Edge& edge : nodes[i]->edges)
        if (edge.node && seen_.insert(edge.node.get()).second) nodes.push_back(edge.node);
    if (leaves_) find_leaves(nodes);
    const auto is_earlier = [](const auto& a, const auto& b) { return a->sequence < b->sequence; };
    std::ranges::sort(nodes, is_earlier);
    if (only_wanted_) find_useful(nodes);
    const auto known = std::ssize(order_);
    order_.insert(order_.end(), nodes.begin(), nodes.end());
    std::inplace_merge(order_.begin(), order_.begin() + known, order_.end(), is_earlier);
  }

  void check_wanted_are_found() const {
    for (const auto& leaf : wanted_leaves_)
      check<AutogradError>(
          options_.allow_unused || found_.contains(leaf.get()),
          "backward: the outputs do not depend on one of the inputs; pass allow_unused = true "
          "to leave it without a gradient");
  }

  void find_leaves(const std::vector<std::shared_ptr<Node>>& nodes) {
    const auto find = [&](const std::shared_ptr<Slot>& leaf) {
      if (!only_wanted_) return leaves_->find(leaf);
      const auto wanted = caught_.find(Place{leaf.get(), 0});
      if (wanted == caught_.end()) return;
      found_.insert(leaf.get());
      leaves_->find(leaf);
    };
    for (const auto& root : leaf_roots_) find(root);
    int64_t going_on = 0;
    for (const auto& node : nodes) {
      going_on += node->goes_on ? 1 : 0;
      for (const Edge& edge : node->edges) find(edge.leaf);
    }
    may_find_more_ = may_find_more_ || going_on > 0;
    if (!may_find_more_) check_wanted_are_found();
    leaves_->found(going_on);
  }

  /// Those that lead to what is wanted, or may.
  void find_useful(const std::vector<std::shared_ptr<Node>>& nodes) {
    for (const auto& node : nodes)
      if (node->goes_on || std::ranges::any_of(node->edges, [&](const Edge& e) { return edge_needed(e); }))
        useful_.insert(node.get());
  }

  bool edge_needed(const Edge& edge) const {
    if (!edge.wanted()) return false;
    return !only_wanted_ || caught_.contains(place_of(edge)) || useful_.contains(edge.node.get());
  }

  void visit(Node& node) {
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
    if (only_wanted_ && !useful_.contains(&node)) return;

    check<AutogradError>(
        !node.released,
        "backward: the graph, at {}, was released by an earlier backward through it. To go through it twice, "
        "keep it in the first: loss.backward({{.retain_graph = true}}). What is kept from step to step (a "
        "hidden state, a sum of losses) is taken off it: state = state.detach()",
        node.name);
    for (std::size_t k = 0; k < gradients.size(); ++k)
      if (!gradients[k].defined() && !node.takes_what_arrives)
        gradients[k] =
            zeros(node.outputs[k].shape, {.dtype = node.outputs[k].dtype, .device = node.outputs[k].device});
    if (more.defined()) gradients.push_back(more);
    const RecordBackward range(node.name, node.sequence, gradients);
    for (const Node::Group& group : node.groups) run_group(node, group, gradients);
    if (!options_.retain_graph && !options_.create_graph) node.release();
  }

  /// Whether a hook or the caller looks at the gradient of a node's output.
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
  Grads run_closure(Node& node, const Node::Group& group, const Grads& gradients, const Needs& needs) {
    const UseScopes scopes(node.scopes);
    const Autocast as_outside{float16, {.enabled = false}};
    const Exchanged<Node*> current(current_node(), &node);
    const Exchanged<BackwardPass*> pass(running(), this);
    const Exchanged<const Edge*> edge(edge_, group.edges == 1 ? &node.edges[group.first_edge] : nullptr);
    return group.backward(gradients, needs);
  }

  void run_group(Node& node, const Node::Group& group, const Grads& gradients) {
    std::vector<bool> wanted(group.edges);
    for (std::size_t i = 0; i < group.edges; ++i) wanted[i] = edge_needed(node.edges[group.first_edge + i]);
    if (!node.goes_on && std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;
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
      if (edge.leaf && accumulates_) tell_if_unlisted(edge.leaf, edge.shape, node.name);
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
    if (leaves_) return leaves_->deliver(leaf, std::move(gradient));
    const auto wanted = caught_.find(Place{leaf.get(), 0});
    if (wanted != caught_.end()) wanted->second.add(gradient);
  }

  const BackwardOptions& options_;
  const Edge* edge_ = nullptr;  ///< where what the closure that runs gives goes, if to one place
  const bool accumulates_;
  const bool only_wanted_;
  std::unordered_map<Place, Accumulator, PlaceHash> caught_;  ///< what is wanted
  std::vector<std::shared_ptr<Slot>> wanted_leaves_;
  std::unordered_map<Node*, std::vector<Accumulator>> pending_;
  std::vector<std::shared_ptr<Node>> roots_;       ///< of outputs that were started
  std::vector<std::shared_ptr<Slot>> leaf_roots_;  ///< those that are leaves, and their gradients
  Grads leaf_gradients_;
  std::unordered_set<const Slot*> found_;  ///< leaves that are wanted, and reached
  bool may_find_more_ = false;             ///< some nodes go on
  std::unordered_set<const Node*> seen_;
  std::unordered_set<const Node*> useful_;
  std::vector<std::shared_ptr<Node>> order_;  ///< nodes to visit, the next one last
  std::optional<LeafGradients> leaves_;       ///< where gradients are accumulated
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

void go_on_backward(const Tensor& output, const Tensor& gradient, uint64_t sequence) {
  BackwardPass::running()->go_on(output, gradient, sequence);
}

Tensor gradient_so_far(const Tensor& dy, const Shape& shape) {
  const BackwardPass* const pass = BackwardPass::running();
  const Tensor sum = pass == nullptr ? Tensor() : pass->changeable_sum();
  const bool fits =
      sum.defined() && sum.shape() == shape && sum.dtype() == dy.dtype() && sum.device() == dy.device();
  return fits ? sum : Tensor();
}

}  // namespace autograd

void backward(const std::vector<Tensor>& outputs, const Grads& gradients, const BackwardOptions& options) {
  for (const Tensor& input : options.inputs)
    check<AutogradError>(
        input.is_leaf() && input.requires_grad(),
        "backward: inputs are leaves that require gradients, got {}; pleat::grad() gives the gradients of "
        "tensors that functions computed",
        input);
  const GradMode mode(options.create_graph);
  autograd::BackwardPass pass(options, options.inputs, true);
  autograd::run_backward(pass, outputs, gradients);
}

Grads grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const Grads& gradients,
           const BackwardOptions& options) {
  check<ValueError>(options.inputs.empty(),
                    "grad: the inputs are given before the gradients, not as an option");
  const GradMode mode(options.create_graph);
  autograd::BackwardPass pass(options, inputs, false);
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
