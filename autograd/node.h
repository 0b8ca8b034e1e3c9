// Private header: not installed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pleat/autograd/tape.h"

namespace pleat::autograd {

using Hook = std::function<Tensor(const Tensor&)>;

/// What the tape knows of a tensor.
struct Slot {
  bool requires_grad = false;  ///< of a leaf
  std::shared_ptr<Node> node;  ///< what produced the tensor; null for a leaf
  std::size_t output = 0;      ///< which of the node's outputs it is
  Tensor grad;
  std::vector<Hook> hooks;  ///< of a leaf; others have them in their node
  bool is_view = false;
  uint64_t view_version = 0;  ///< of the storage when the view was taken

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
  bool released = false;
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

/// A handle of its own on the same elements, with the tape's present view of the tensor.
Tensor snapshot(const Tensor& tensor);

}  // namespace pleat::autograd
