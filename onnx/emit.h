// Private header: not installed.
#pragma once

#include <optional>
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
  /// A name that is still free, which begins with `stem`.
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

class Emit;

/// An operand of a node: a value of the graph, or a number, which becomes a constant in the type of the
/// call's result. Empty where it is undefined, as ONNX has it.
class Operand {
 public:
  Operand() = default;
  Operand(double number) : number_(number) {}
  Operand(Emit& emit, std::string name) : name_(std::move(name)), emit_(&emit) {}

  std::string name(Emit& emit) const;
  Emit* emit() const { return emit_; }

 private:
  std::string name_;
  std::optional<double> number_;
  Emit* emit_ = nullptr;
};
using Operands = std::vector<Operand>;

/// The node `op` of these operands, of which one at least is a value.
Operand node_of(const char* op, const Operands& inputs);
template <class... Inputs>
Operand apply(const char* op, const Inputs&... inputs) {
  return node_of(op, {Operand(inputs)...});
}
inline Operand operator+(const Operand& a, const Operand& b) { return apply("Add", a, b); }
inline Operand operator-(const Operand& a, const Operand& b) { return apply("Sub", a, b); }
inline Operand operator*(const Operand& a, const Operand& b) { return apply("Mul", a, b); }
inline Operand operator/(const Operand& a, const Operand& b) { return apply("Div", a, b); }

/// One call while it is written in ONNX: its operands and options, and the nodes that it becomes. What cannot
/// be written throws ValueError.
class Emit {
 public:
  Emit(GraphBuilder& builder, const Plan& plan, std::size_t call)
      : builder_(builder), plan_(plan), index_(call), call_(plan.trace.calls[call]) {}

  // --- Operands
  std::size_t inputs() const { return call_.inputs.size(); }
  bool has(std::size_t i) const { return i < call_.inputs.size() && call_.inputs[i] >= 0; }
  Operand in(std::size_t i) { return has(i) ? of(builder_.name_of(call_.inputs[i])) : Operand(); }
  /// The same in another type.
  Operand in(std::size_t i, DType dtype) {
    return !has(i) || this->dtype(i) == dtype ? in(i) : cast(in(i), dtype);
  }
  /// The same in the type of the result: integers become floating, types are promoted.
  Operand x(std::size_t i = 0) { return in(i, out_dtype()); }
  const Tensor& tensor(std::size_t i) const { return value(call_.inputs[i]).tensor; }
  DType dtype(std::size_t i) const { return tensor(i).dtype(); }
  int64_t rank(std::size_t i) const { return tensor(i).rank(); }
  const SizeList& shape(std::size_t i) const { return shape_of(call_.inputs[i]); }
  /// Sizes that must not depend on the batch.
  int64_t fixed_size(std::size_t i, int64_t dim) const;
  DType out_dtype(std::size_t i = 0) const { return value(call_.outputs[i]).tensor.dtype(); }
  const SizeList& out_shape(std::size_t i = 0) const { return shape_of(call_.outputs[i]); }

  // --- Options
  int64_t integer(const std::string& attribute) const { return integers(attribute).at(0); }
  bool flag(const std::string& attribute) const { return integer(attribute) != 0; }
  double number(const std::string& attribute) const;
  std::string text(const std::string& attribute) const;
  std::vector<int64_t> integers(const std::string& attribute) const;
  /// Which may depend on the batch.
  const SizeList& sizes(const std::string& attribute) const;
  /// A dimension of the first input, or of a tensor of this rank, counted from the front.
  int64_t dim(const std::string& attribute = "dim") const { return dim(attribute, rank(0)); }
  int64_t dim(const std::string& attribute, int64_t rank) const;

  // --- Nodes
  Operand node(const std::string& op, const Operands& inputs, NodeAttributes attributes = {}) {
    return nodes(op, inputs, std::move(attributes), 1)[0];
  }
  Operands nodes(const std::string& op, const Operands& inputs, NodeAttributes attributes,
                 std::size_t outputs);
  Operand constant(const Tensor& tensor) { return of(builder_.constant(tensor)); }
  Operand constant(Scalar value, DType dtype, const Shape& shape = {});
  /// A number among the options, in the type of the result; an integer keeps all its digits.
  Operand number_of(const std::string& attribute);
  Operand list(const std::vector<int64_t>& values);
  Operand list(const SizeList& values) { return of(builder_.sizes(values)); }
  Operand cast(const Operand& x, DType dtype) { return node("Cast", {x}, {{"to", type_number(dtype)}}); }
  /// In the shape; -1 stands for one size that depends on the batch.
  Operand reshape(const Operand& x, const SizeList& shape);
  Operand transpose(const Operand& x, const std::vector<int64_t>& order) {
    return node("Transpose", {x}, {{"perm", order}});
  }
  Operand concat(const Operands& parts, int64_t dim) { return node("Concat", parts, {{"axis", dim}}); }
  /// Elements [start, end) along a dimension.
  Operand slice(const Operand& x, int64_t dim, const Size& start, const Size& end, int64_t step = 1);

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  Operand of(std::string name) { return {*this, std::move(name)}; }
  const Value& value(int v) const { return plan_.trace.values[static_cast<std::size_t>(v)]; }
  const SizeList& shape_of(int v) const { return plan_.shapes[static_cast<std::size_t>(v)]; }
  const Attribute::Value& option(const std::string& attribute) const;

  GraphBuilder& builder_;
  const Plan& plan_;
  std::size_t index_;
  const Call& call_;
};

}  // namespace pleat::onnx
