#include "pleat/autograd/tape.h"

#include <atomic>

#include "pleat/autograd/anomaly.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/core/copy.h"
#include "pleat/core/format.h"
#include "pleat/core/record_function.h"

namespace pleat {
namespace autograd {
namespace {

std::atomic<uint64_t> sequence{0};

bool wants_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.impl().slot && tensor.impl().slot->wants_grad();
}

void check_view(const std::string& op, const Tensor& tensor) {
  const auto& slot = tensor.impl().slot;
  check<AutogradError>(
      !slot || !slot->is_view || slot->view_version == tensor.version(),
      "{}: the input {} is a view whose tensor was changed in place after the view was taken; take "
      "the view again",
      op, tensor);
}

Edge edge_to(const Tensor& input) {
  Edge edge;
  if (!wants_grad(input)) return edge;
  const auto& slot = input.impl().slot;
  if (slot->node) {
    edge.node = slot->node;
    edge.output = slot->output;
  } else {
    edge.leaf = slot;
  }
  edge.shape = input.shape();
  edge.dtype = input.dtype();
  edge.device = input.device();
  return edge;
}

}  // namespace

Node*& current_node() {
  thread_local Node* node = nullptr;
  return node;
}

Slot& slot_of(const Tensor& tensor) {
  auto& slot = tensor.mutable_impl().slot;
  if (!slot) slot = std::make_shared<Slot>();
  return *slot;
}

Tensor snapshot(const Tensor& tensor) {
  const TensorImpl& t = tensor.impl();
  Tensor alias = make_tensor(t.storage, t.shape, t.strides, t.offset, t.dtype);
  if (!t.slot) return alias;
  if (t.slot->node) {
    Slot& slot = slot_of(alias);
    slot.node = t.slot->node;
    slot.output = t.slot->output;
  } else {
    alias.mutable_impl().slot = t.slot;
  }
  return alias;
}

Node::~Node() {
  // A long chain would overflow the stack if each node destroyed the next: the first one takes them all down.
  thread_local std::vector<std::shared_ptr<Node>>* doomed = nullptr;
  const bool first = doomed == nullptr;
  std::vector<std::shared_ptr<Node>> list;
  if (first) doomed = &list;
  groups.clear();  // saved tensors may hold nodes too
  for (Edge& edge : edges)
    if (edge.node) doomed->push_back(std::move(edge.node));
  if (!first) return;
  while (!list.empty()) {
    const std::shared_ptr<Node> node = std::move(list.back());
    list.pop_back();
  }
  doomed = nullptr;
}

void Node::release() {
  if (keeps_nothing) return;
  groups.clear();
  released = true;
}

void mark_view(const Tensor& view) {
  if (!wants_grad(view)) return;
  Slot& slot = slot_of(view);
  slot.is_view = true;
  slot.view_version = view.version();
}

bool anything_to_record(std::initializer_list<Tensor> tensors) {
  if (!grad_enabled()) return false;
  for (const Tensor& tensor : tensors)
    if (wants_grad(tensor)) return true;
  return false;
}

}  // namespace autograd

using namespace autograd;

Saved::Saved(const Tensor& tensor) {
  if (!grad_enabled() || !tensor.defined()) return;
  alias_ = snapshot(tensor);
  id_ = tensor.impl().id;
  version_ = tensor.version();
}

Tensor Saved::operator*() const {
  if (!alias_.defined()) return {};
  Node* node = current_node();
  check<AutogradError>(
      alias_.version() == version_,
      "{}: backward needs a tensor {} that was changed in place since (version {}, saved at {}); "
      "change a clone() instead",
      node != nullptr ? node->name : "backward", alias_, alias_.version(), version_);
  if (node != nullptr)
    for (std::size_t k = 0; k < node->outputs.size(); ++k)
      if (node->outputs[k].id == id_) {
        const TensorImpl& t = alias_.impl();
        Tensor output = make_tensor(t.storage, t.shape, t.strides, t.offset, t.dtype);
        Slot& slot = slot_of(output);
        // The engine keeps the running node alive; only a graph of gradients must hold it longer.
        if (grad_enabled()) slot.node = node->shared_from_this();
        slot.output = k;
        return output;
      }
  return alias_;
}

std::vector<Tensor> record(std::string name, std::vector<Tensor> outputs,
                           std::vector<Derivative> derivatives) {
  if (anomaly_mode()) check_no_nan(name, "gave", outputs);
  if (!grad_enabled()) return outputs;
  bool any = false;
  for (const Derivative& derivative : derivatives)
    for (const Tensor& input : derivative.inputs) any = any || wants_grad(input);
  if (!any) return outputs;

  auto node = std::make_shared<Node>();
  for (Derivative& derivative : derivatives) {
    const std::size_t first = node->edges.size();
    bool wanted = false;
    for (const Tensor& input : derivative.inputs) {
      if (wants_grad(input)) check_view(name, input);
      node->edges.push_back(edge_to(input));
      wanted = wanted || node->edges.back().wanted();
    }
    // What an unwanted closure has saved is let go right here.
    if (wanted) node->groups.push_back({first, derivative.inputs.size(), std::move(derivative.backward)});
  }
  node->name = std::move(name);
  node->sequence = ++sequence;
  if (is_recording()) announce_recorded(node->name, node->sequence);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Tensor& output = outputs[k];
    node->outputs.push_back({output.impl().id, output.shape(), output.dtype(), output.device(), {}, {}});
    if (!is_floating(output.dtype())) continue;
    auto slot = std::make_shared<Slot>();
    slot->node = node;
    slot->output = k;
    output.mutable_impl().slot = std::move(slot);
  }
  return outputs;
}

Tensor record(std::string name, const Tensor& output, std::vector<Derivative> derivatives) {
  return record(std::move(name), std::vector<Tensor>{output}, std::move(derivatives))[0];
}

void become(const char* op, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const auto& slot = x.impl().slot;
  check<AutogradError>(
      !slot || slot->node || !slot->requires_grad,
      "{}: a leaf that requires a gradient cannot be changed in place while recording; do it under "
      "NoGrad",
      op);
  check<AutogradError>(
      !slot || !slot->is_view,
      "{}: a view on the tape cannot be changed in place; use the function that returns a new tensor", op);
  Tensor before = ops::copy(x);
  if (slot && slot->node) {
    Slot& own = slot_of(before);
    own.node = slot->node;
    own.output = slot->output;
  }
  const Tensor after = f(before);
  check<ShapeError>(after.shape() == x.shape(), "{}: the result has shape {}, which does not fit into {}", op,
                    after.shape(), x.shape());
  check<DTypeError>(after.dtype() == x.dtype(),
                    "{}: the result is {}, which cannot be stored in a tensor of {}", op, after.dtype(),
                    x.dtype());
  ops::copy_into(x, after);
  x.mutable_impl().slot = after.impl().slot;
}

}  // namespace pleat
