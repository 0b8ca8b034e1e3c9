// Private header: not installed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/autograd/gradient_watcher.h"
#include "pleat/autograd/tape.h"
#include "pleat/core/base/scope.h"

namespace pleat::autograd {

using Hook = std::function<Tensor(const Tensor&)>;

/// The tape's record of a tensor.
struct Slot {
  bool requires_grad = false;       ///< of a leaf
  bool decided = false;             ///< whether requires_grad was set
  bool parameter = false;           ///< made to be trained: a module is to list it (autograd/unlisted.h)
  std::atomic<bool> listed{false};  ///< and one did, or an optimiser has it
  std::shared_ptr<Node> node;       ///< what produced the tensor; null for a leaf
  std::size_t output = 0;           ///< which of the node's outputs it is
  Tensor grad;
  bool retains_grad = false;               ///< of a tensor that is no leaf
  std::vector<Hook> hooks;                 ///< of a leaf; others have them in their node
  std::weak_ptr<GradientWatcher> watcher;  ///< of a leaf
  std::size_t watched_as = 0;              ///< its number there
  /// Of a view taken while recording: the tensor whose elements it shows, itself no such view.
  std::shared_ptr<TensorImpl> base;
  /// How often an in-place function gave the tensor another node; of a view: the base's when its node was
  /// made.
  uint64_t history = 0;

  bool wants_grad() const { return requires_grad || node != nullptr; }
};

/// Where an input's gradient goes: to a leaf's slot or to an output of another node.
struct Edge {
  std::shared_ptr<Slot> leaf;
  std::shared_ptr<Node> node;
  std::size_t output = 0;
  Shape shape;
  DType dtype = float32;
  Device device;

  bool wanted() const { return leaf != nullptr || node != nullptr; }
};

/// A recorded call.
struct Node : std::enable_shared_from_this<Node> {
  struct Group {
    std::size_t first_edge;
    std::size_t edges;
    std::function<Grads(const Grads&, const Needs&)> backward;
  };
  struct Output {
    uint64_t id;
    Shape shape;
    DType dtype;
    Device device;
    std::vector<Hook> hooks;
    std::weak_ptr<Slot> retain;  ///< where to keep the gradient of an output that is not a leaf
  };

  std::string name;
  uint64_t sequence = 0;  ///< a node's inputs come from nodes of lower sequence
  std::vector<Edge> edges;
  std::vector<Group> groups;
  std::vector<Output> outputs;
  Scopes scopes;  ///< around the call; its closures run in them
  bool released = false;
  /// Closures get gradients as they arrive: undefined ones for outputs without any, and of a single output
  /// also two, which they add up themselves.
  bool takes_what_arrives = false;
  bool goes_on = false;        ///< its closures call go_on_backward()
  bool keeps_nothing = false;  ///< no tensors in its closures: it may be walked again and again

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  void release();
};

/// The node whose closure runs in this thread; null outside backward.
Node*& current_node();

/// The slot of a tensor, made when it has none.
Slot& slot_of(const Tensor& tensor);

/// The tape's record of a tensor now, null where there is none. A view whose base was changed in place since
/// gets a node that reads the base as it is. Throws AutogradError where that cannot be: for a leaf.
const std::shared_ptr<Slot>& present_slot(const Tensor& tensor);

/// Whether this is the first run of a function that checkpoint() will run again, on the tape.
bool records_later();
/// What this thread's checkpoint() is to throw at the end of such a run.
std::string& first_run_error();

/// Notes, while it exists, which function this thread called last under NoGrad with a tensor that requires a
/// gradient.
class NoteUnrecorded {
 public:
  NoteUnrecorded();
  ~NoteUnrecorded();
  NoteUnrecorded(const NoteUnrecorded&) = delete;
  NoteUnrecorded& operator=(const NoteUnrecorded&) = delete;
  /// For the end of an error message; empty where there was none.
  std::string remark() const;

 private:
  std::string last_;
  std::string* outer_;
};

/// Goes on with the backward() that is under way in this thread, and called the closure that calls this: on
/// the graph of `output`, which the closure has recorded since `sequence`, with its gradient. What this graph
/// was made of gets its gradients as if the graph had been recorded with the others.
void go_on_backward(const Tensor& output, const Tensor& gradient, uint64_t sequence);

/// The sequence number of the last node.
uint64_t last_sequence();

/// Whether it is a leaf of which it has not been set whether it requires a gradient.
bool is_undecided(const Tensor& tensor);

/// Throws AutogradError when the elements of a tensor have a history on the tape that it does not know of.
void check_history(const std::string& op, const Tensor& tensor);

/// Throws ShapeError, DTypeError, DeviceError unless a gradient that is given fits its tensor as it is.
void check_gradient(const char* who, const Tensor& gradient, const Shape& shape, DType dtype, Device device);

/// A handle of its own on the same elements, with the tape's record of the tensor as it is now.
Tensor snapshot(const Tensor& tensor);

}  // namespace pleat::autograd
