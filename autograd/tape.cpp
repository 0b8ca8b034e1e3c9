#include "pleat/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "pleat/autograd/anomaly.h"
#include "pleat/autograd/grad_mode.h"
#include "pleat/autograd/node.h"
#include "pleat/autograd/strided_part.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/base/thread_object.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/trace.h"

namespace pleat {
namespace autograd {
namespace {

std::atomic<uint64_t> sequence{0};

bool wants_grad(const Tensor& tensor) {
  if (!tensor.defined()) return false;
  const auto& slot = present_slot(tensor);
  return slot && slot->wants_grad();
}

void report_call(const std::string& name, const std::vector<Tensor>& outputs,
                 const std::vector<Derivative>& derivatives) {
  std::vector<TracedInput> inputs;
  for (const Derivative& derivative : derivatives)
    for (const Tensor& input : derivative.inputs) inputs.emplace_back(input);
  detail::call_observer->called(name, inputs, outputs, {});
}

/// The tensor a view follows; null for a tensor that is no such view.
std::shared_ptr<TensorImpl> base_of(const Tensor& tensor) {
  const auto& slot = tensor.impl().slot;
  return slot ? slot->base : nullptr;
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

/// Gives a tensor another place on the tape: that of `from`, which has the same elements.
void move_to(const std::shared_ptr<Slot>& slot, const std::shared_ptr<Slot>& from) {
  if (slot->node && slot->retains_grad) slot->node->outputs[slot->output].retain.reset();
  slot->node = from ? from->node : nullptr;
  slot->output = from ? from->output : 0;
  if (slot->node && slot->retains_grad) slot->node->outputs[slot->output].retain = slot;
}

uint64_t history_of(const TensorImpl& base) { return base.slot ? base.slot->history : 0; }

/// Makes the node of a view whose base was changed in place.
void take_again(const Tensor& view, const std::shared_ptr<Slot>& slot) {
  const TensorImpl& base = *slot->base;
  check<AutogradError>(
      !slot->requires_grad,
      "the tensor {} is a leaf that requires a gradient and shows elements of another tensor, which "
      "were changed in place on the tape; make it a leaf of its own by clone() before set_requires_grad()",
      view);
  check<AutogradError>(base.storage == view.impl().storage,
                       "the tensor {} is a view of a tensor that has other elements now; take the view again",
                       view);
  const EnableGrad recording;
  const Tensor whole(slot->base);
  const StridedPart part(base, view.impl());
  const Tensor now =
      record("as_strided", view.detach(),
             {grad_of(whole, [part](const Tensor& dy) { return strided_part_backward(dy, part); })});
  move_to(slot, now.impl().slot);
  slot->history = history_of(base);
}

/// A view whose base has no other handle any more is a tensor of its own.
void leave_lonely_base(const Tensor& x) {
  const auto& slot = x.impl().slot;
  if (slot && slot->base && slot->base.use_count() == 1) slot->base = nullptr;
}

thread_local std::string* unrecorded = nullptr;

void note_unrecorded(const std::string& name, const std::vector<Derivative>& derivatives) {
  if (unrecorded == nullptr || records_later()) return;
  for (const Derivative& derivative : derivatives)
    if (std::ranges::any_of(derivative.inputs, wants_grad)) *unrecorded = name;
}

}  // namespace

uint64_t last_sequence() { return sequence; }

bool records_later() { return pleat::detail::recording() == pleat::detail::Recording::later; }

std::string& first_run_error() {
  thread_local ThreadObject<std::string> error;
  return *error;
}

NoteUnrecorded::NoteUnrecorded() : outer_(std::exchange(unrecorded, &last_)) {}
NoteUnrecorded::~NoteUnrecorded() { unrecorded = outer_; }

std::string NoteUnrecorded::remark() const {
  if (last_.empty()) return "";
  return fmt::format(
      "; {} was called under NoGrad, where record() does nothing: end the scope of the NoGrad before it",
      last_);
}

bool is_undecided(const Tensor& tensor) {
  const auto& slot = present_slot(tensor);
  return !slot || (!slot->node && !slot->decided);
}

void check_history(const std::string& op, const Tensor& tensor) {
  if (!tensor.defined() || tensor.impl().storage->taped_at == 0) return;
  const auto base = base_of(tensor);
  const TensorImpl& t = base ? *base : tensor.impl();
  const Storage& storage = *t.storage;
  check<AutogradError>(
      storage.taped_by == t.id || t.alias == Alias::detached ||
          (t.alias == Alias::view && t.viewed_at >= storage.taped_at),
      "{}: the elements of {} were changed by a function on the tape through another tensor that shares "
      "them, which alone knows the gradient: a view taken under NoGrad or a detach(); "
      "read that one, or write into a view taken while recording, or into a clone()",
      op, tensor);
}

void check_gradient(const char* who, const Tensor& gradient, const Shape& shape, DType dtype, Device device) {
  check<ShapeError>(gradient.shape() == shape, "{}: the gradient has shape {}, the tensor {}", who,
                    gradient.shape(), shape);
  check<DTypeError>(gradient.dtype() == dtype,
                    "{}: the gradient is {}, the tensor {}; convert it with to({})", who, gradient.dtype(),
                    dtype, dtype);
  check<DeviceError>(gradient.device() == device, "{}: the gradient is on {}, the tensor on {}", who,
                     gradient.device(), device);
}

Node*& current_node() {
  thread_local Node* node = nullptr;
  return node;
}

Slot& slot_of(const Tensor& tensor) {
  auto& slot = tensor.mutable_impl().slot;
  if (!slot) slot = std::make_shared<Slot>();
  return *slot;
}

void watch_gradient(const Tensor& leaf, const std::shared_ptr<GradientWatcher>& watcher, std::size_t number) {
  Slot& slot = slot_of(leaf);
  check<ValueError>(slot.watcher.expired(),
                    "the gradient of {} is watched already: a network belongs to one DataParallel at a time",
                    leaf);
  slot.watcher = watcher;
  slot.watched_as = number;
}

const std::shared_ptr<Slot>& present_slot(const Tensor& tensor) {
  const auto& slot = tensor.impl().slot;
  if (slot && slot->base && slot->history != history_of(*slot->base)) take_again(tensor, slot);
  return slot;
}

Tensor snapshot(const Tensor& tensor) {
  Tensor alias = tensor.detach();
  const auto& slot = present_slot(tensor);
  if (!slot || !slot->wants_grad()) return alias;
  if (slot->node) {
    Slot& own = slot_of(alias);
    own.node = slot->node;
    own.output = slot->output;
  } else {
    alias.mutable_impl().slot = slot;
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

void follow(const Tensor& view, const Tensor& input) {
  if (!grad_enabled()) return;
  Slot& slot = slot_of(view);
  const std::shared_ptr<TensorImpl> further = base_of(input);
  slot.base = further ? further : input.shared_impl();
  slot.history = history_of(*slot.base);
}

bool matters(const Tensor& input) {
  if (!input.defined()) return false;
  if (detail::call_observer != nullptr || anomaly_mode() || unrecorded != nullptr) return true;
  return grad_enabled() && (wants_grad(input) || input.impl().storage->taped_at != 0);
}

bool any_matters(const std::vector<Tensor>& inputs) { return std::ranges::any_of(inputs, matters); }

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
      "{}: backward needs a tensor {} that was changed in place since; change a clone() instead",
      node != nullptr ? node->name.c_str() : "backward", alias_);
  if (node != nullptr)
    for (std::size_t k = 0; k < node->outputs.size(); ++k)
      if (node->outputs[k].id == id_) {
        Tensor output = alias_.detach();
        Slot& slot = slot_of(output);
        // The engine keeps the running node alive; only a graph of gradients must hold it longer.
        if (grad_enabled()) slot.node = node->shared_from_this();
        slot.output = k;
        return output;
      }
  return alias_;
}

namespace {
/// Whether a function is a view: its elements are what another function gave.
bool shows_an_input(const std::vector<Tensor>& outputs, const std::vector<Derivative>& derivatives) {
  for (const Derivative& derivative : derivatives)
    for (const Tensor& input : derivative.inputs)
      if (input.defined() && outputs.size() == 1 && outputs[0].defined() &&
          input.impl().storage == outputs[0].impl().storage)
        return true;
  return false;
}
}  // namespace

std::vector<Tensor> record(std::string name, std::vector<Tensor> outputs,
                           std::vector<Derivative> derivatives) {
  if (anomaly_mode() && !shows_an_input(outputs, derivatives)) check_no_nan(name, "gave", outputs);
  if (detail::call_observer != nullptr) [[unlikely]]
    report_call(name, outputs, derivatives);
  if (!grad_enabled()) {
    note_unrecorded(name, derivatives);
    return outputs;
  }
  bool any = false;
  for (const Derivative& derivative : derivatives)
    for (const Tensor& input : derivative.inputs) {
      check_history(name, input);
      any = any || wants_grad(input);
    }
  if (!any) return outputs;

  auto node = std::make_shared<Node>();
  for (Derivative& derivative : derivatives) {
    const std::size_t first = node->edges.size();
    bool wanted = false;
    for (const Tensor& input : derivative.inputs) {
      node->edges.push_back(edge_to(input));
      wanted = wanted || node->edges.back().wanted();
    }
    // What an unwanted closure has saved is let go right here.
    if (wanted) node->groups.push_back({first, derivative.inputs.size(), std::move(derivative.backward)});
  }
  node->name = std::move(name);
  node->sequence = ++sequence;
  node->scopes = Scopes::current();
  if (is_recording()) record_node(node->name, node->sequence);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Tensor& output = outputs[k];
    node->outputs.push_back({output.impl().id, output.shape(), output.dtype(), output.device(), {}, {}});
    TensorImpl& impl = output.mutable_impl();
    if (impl.alias == Alias::detached) {
      // From now on it is one of the tape's tensors.
      impl.alias = Alias::view;
      impl.viewed_at = impl.storage->version;
    }
    if (!is_floating(output.dtype())) continue;
    auto slot = std::make_shared<Slot>();
    slot->node = node;
    slot->output = k;
    impl.slot = std::move(slot);
  }
  return outputs;
}

Tensor record(std::string name, const Tensor& output, std::vector<Derivative> derivatives) {
  return record(std::move(name), std::vector<Tensor>{output}, std::move(derivatives))[0];
}

bool changes_tape(const Tensor& x, std::initializer_list<Tensor> others) {
  if (!grad_enabled() && !records_later()) return false;
  const auto base = base_of(x);
  const bool on_tape = wants_grad(x) || (base && wants_grad(Tensor(base)));
  check<AutogradError>(
      !on_tape || grad_enabled(),
      "checkpoint: the function changes a tensor {} in place that is not its own and requires "
      "a gradient, and it runs twice; let it change a clone()",
      x);
  return on_tape || anything_to_record(others);
}

namespace {

/// Throws unless the tape can take a change of `x` in place.
void check_changeable(const char* op, const Tensor& x) {
  const auto is_leaf_on_tape = [](const std::shared_ptr<Slot>& slot) {
    return slot && !slot->node && slot->requires_grad;
  };
  const auto base = base_of(x);
  check<AutogradError>(
      !is_leaf_on_tape(x.impl().slot),
      "{}: a leaf that requires a gradient cannot be changed in place while recording; do it under "
      "NoGrad",
      op);
  check<AutogradError>(
      !base || !is_leaf_on_tape(base->slot),
      "{}: a view of a leaf that requires a gradient cannot be changed in place while recording; do it "
      "under NoGrad",
      op);
  check_history(op, x);
}

/// Gives the base of `x` the history of a change of x to `after`, whose elements are there already.
void rebase(const char* op, const Tensor& x, const Tensor& after) {
  const auto base = base_of(x);
  const StridedPart part(*base, x.impl());
  const Tensor now =
      record(op, Tensor(base).detach(),
             {grad_of(Tensor(base), [part](const Tensor& dy) { return without_strided_part(dy, part); }),
              grad_of(after, [part](const Tensor& dy) { return strided_part(dy, part); })});
  slot_of(Tensor(base));
  move_to(base->slot, now.impl().slot);
  ++base->slot->history;
}

}  // namespace

void replace_in_place(const char* op, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  present_slot(x);
  check_changeable(op, x);
  Tensor before = ops::copy(x);
  const auto& slot = x.impl().slot;
  if (slot && slot->node) {
    Slot& own = slot_of(before);
    own.node = slot->node;
    own.output = slot->output;
  }
  Tensor after = f(before);
  check<ShapeError>(after.shape() == x.shape(), "{}: the result has shape {}, which does not fit into {}", op,
                    after.shape(), x.shape());
  check<DTypeError>(after.dtype() == x.dtype(),
                    "{}: the result is {}, which cannot be stored in a tensor of {}", op, after.dtype(),
                    x.dtype());
  if (after.is_leaf() && after.requires_grad())
    after = record(op, after.detach(), {grad_of(after, [](const Tensor& dy) { return dy; })});
  ops::copy_into(x, after);
  leave_lonely_base(x);
  const auto base = base_of(x);
  Storage& storage = *x.mutable_impl().storage;
  storage.taped_at = storage.version;
  storage.taped_by = base ? base->id : x.impl().id;
  if (base) {
    rebase(op, x, after);
  } else {
    slot_of(x);
    move_to(slot, present_slot(after));
    ++slot->history;
  }
}

}  // namespace pleat
