// Private header: not installed.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "pleat/onnx/graph.h"
#include "pleat/onnx/plan.h"

namespace pleat::onnx {

/// A graph as it grows from a plan. Names of values are unique; those of state are its own.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Plan& plan) : plan_(plan) {}

  /// The name of a value: of state and constants an initializer is made at the first use.
  std::string name_of(int value);
  void set_name(int value, std::string name) { names_.insert_or_assign(value, std::move(name)); }
  /// A name that nobody has, which begins with `stem`.
  std::string unique(const std::string& stem);
  std::string constant(const Tensor& tensor, const std::string& stem = "constant");
  /// Sizes as a tensor [n] int64; computed from the batch where one depends on it.
  std::string sizes(const SizeList& list);
  std::vector<std::string> node(const std::string& op, const std::string& path,
                                std::vector<std::string> inputs, NodeAttributes attributes,
                                std::size_t outputs);

  Graph graph;

 private:
  std::string size(const Size& size);

  const Plan& plan_;
  std::unordered_map<int, std::string> names_;
  std::unordered_map<std::string, int> taken_;
  std::unordered_map<std::string, std::string> numbers_;  ///< small constants by their content
  std::string batch_;
};

/// One call while it is written in ONNX: its operands and options, and the nodes that it becomes. What cannot
/// be written throws ValueError.
class Emit {
 public:
  Emit(GraphBuilder& builder, const Plan& plan, std::size_t call)
      : builder_(builder), plan_(plan), index_(call), call_(plan.trace.calls[call]) {}

  // --- Operands
  std::size_t inputs() const { return call_.inputs.size(); }
  bool has(std::size_t i) const { return i < call_.inputs.size() && call_.inputs[i] >= 0; }
  /// Its name; empty where it is undefined, as ONNX has it.
  std::string in(std::size_t i) { return has(i) ? builder_.name_of(call_.inputs[i]) : std::string(); }
  /// The same in another type.
  std::string in(std::size_t i, DType dtype);
  const Tensor& tensor(std::size_t i) const { return value(call_.inputs[i]).tensor; }
  bool is_constant(std::size_t i) const { return value(call_.inputs[i]).kind == Value::Kind::constant; }
  DType dtype(std::size_t i) const { return tensor(i).dtype(); }
  int64_t rank(std::size_t i) const { return tensor(i).rank(); }
  const SizeList& shape(std::size_t i) const { return shape_of(call_.inputs[i]); }
  /// Sizes that must not depend on the batch.
  int64_t fixed_size(std::size_t i, int64_t dim) const;
  DType out_dtype(std::size_t i = 0) const { return value(call_.outputs[i]).tensor.dtype(); }
  const SizeList& out_shape(std::size_t i = 0) const { return shape_of(call_.outputs[i]); }
  /// A dimension counted from the front.
  int64_t dim(const std::string& attribute, int64_t rank) const;

  // --- Options
  int64_t integer(const std::string& attribute) const;
  bool flag(const std::string& attribute) const { return integer(attribute) != 0; }
  double number(const std::string& attribute) const;
  std::string text(const std::string& attribute) const;
  std::vector<int64_t> integers(const std::string& attribute) const;
  /// Which may depend on the batch.
  const SizeList& sizes(const std::string& attribute) const;

  // --- Nodes
  std::string node(const std::string& op, std::vector<std::string> inputs, NodeAttributes attributes = {}) {
    return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
  }
  std::vector<std::string> nodes(const std::string& op, std::vector<std::string> inputs,
                                 NodeAttributes attributes, std::size_t outputs) {
    return builder_.node(op, call_.module, std::move(inputs), std::move(attributes), outputs);
  }
  std::string constant(const Tensor& tensor) { return builder_.constant(tensor); }
  std::string number(Scalar value, DType dtype);  ///< of rank 0
  std::string number_of(const std::string& attribute, DType dtype);
  std::string list(const std::vector<int64_t>& values);
  std::string list(const SizeList& values) { return builder_.sizes(values); }
  std::string cast(const std::string& name, DType dtype) {
    return node("Cast", {name}, {{"to", type_number(dtype)}});
  }
  /// In the shape; -1 stands for one size that depends on the batch.
  std::string reshape(const std::string& name, const SizeList& shape);
  /// Elements [start, end) along a dimension.
  std::string slice(const std::string& name, int64_t dim, const Size& start, const Size& end,
                    int64_t step = 1);

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Value& value(int v) const { return plan_.trace.values[static_cast<std::size_t>(v)]; }
  const SizeList& shape_of(int v) const { return plan_.shapes[static_cast<std::size_t>(v)]; }
  const Attribute* find(const std::string& attribute) const;

  GraphBuilder& builder_;
  const Plan& plan_;
  std::size_t index_;
  const Call& call_;
};

}  // namespace pleat::onnx
