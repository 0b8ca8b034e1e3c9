// Private header: not installed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/onnx/graph.h"

namespace pleat::onnx::imported {

/// A value of a graph that is running.
struct GraphValue {
  GraphValue() = default;
  GraphValue(Tensor computed) : tensor(std::move(computed)) {}
  GraphValue(std::vector<GraphValue> elements)
      : sequence(std::make_shared<const std::vector<GraphValue>>(std::move(elements))) {}

  bool defined() const { return tensor.defined() || sequence != nullptr; }

  Tensor tensor = {};
  std::shared_ptr<const std::vector<GraphValue>> sequence = {};  ///< of tensors; then there is no tensor
  /// Whether it depends on constants and sizes alone. It is on the CPU, and was computed off the tape and
  /// unseen by those who watch: sizes are options of the calls that they see.
  bool on_host = false;
  bool is_constant = false;  ///< of the file; then also on the host
  /// ONNX's number of its type, where Pleat's tells less: 3 is int8, held as int32. 0: as Pleat has it.
  int64_t type = 0;
};
using GraphValues = std::vector<GraphValue>;

/// A size, or what is like it, as a value on the host.
inline GraphValue on_host(const Tensor& tensor) {
  GraphValue value(tensor.to(Device()));
  value.on_host = true;
  return value;
}

struct Block;

/// What a node needs of the network that runs.
class Runtime {
 public:
  virtual bool training() const = 0;
  /// The type in which the network computes what its file has in this one: another after to(bfloat16).
  virtual DType dtype_now(DType in_file) const = 0;
  /// A constant as an operand beside tensors on a device.
  virtual Tensor as_operand(const GraphValue& constant) = 0;
  virtual GraphValues run(const Block& block, GraphValues inputs) = 0;

 protected:
  ~Runtime() = default;
};

/// A node while it runs: its inputs and attributes. What is wrong with them throws ValueError, naming the
/// node.
class NodeCall {
 public:
  NodeCall(const Node& node, int64_t opset, std::span<const GraphValue* const> inputs,
           const std::map<std::string, std::shared_ptr<const Block>, std::less<>>& blocks, Runtime& runtime,
           bool on_host)
      : node_(node), opset_(opset), inputs_(inputs), blocks_(blocks), runtime_(runtime), on_host_(on_host) {}

  int64_t opset() const { return opset_; }  ///< of the operator's domain
  std::size_t outputs() const { return node_.outputs.size(); }
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }
  bool training() const { return runtime_.training(); }
  /// Whether it is computed of constants and sizes alone.
  bool on_host() const { return on_host_; }

  // --- Inputs
  std::size_t inputs() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i]->defined(); }
  const GraphValue& value(std::size_t i) const;
  /// A tensor, on the network's device.
  const Tensor& x(std::size_t i = 0) const;
  /// Undefined where it is not given.
  const Tensor& x_or_none(std::size_t i) const;
  std::vector<Tensor> all() const;
  /// A value that is no input, as these are.
  Tensor operand(const GraphValue& value) const {
    return value.on_host && !on_host_ ? runtime_.as_operand(value) : value.tensor;
  }
  DType dtype(std::size_t i = 0) const { return x(i).dtype(); }
  int64_t rank(std::size_t i = 0) const { return x(i).rank(); }
  /// The numbers of an input that is an option.
  std::vector<int64_t> integers(std::size_t i) const;
  std::vector<double> numbers(std::size_t i) const;
  int64_t integer(std::size_t i) const;
  double number(std::size_t i) const;
  /// The number, where an input is one constant beside which another's shape is not broadcast.
  std::optional<Scalar> constant(std::size_t i, int64_t rank) const;

  // --- Attributes
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise) != 0; }
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, const char* otherwise) const;
  /// What an attribute's text stands for.
  template <class T>
  T choice(std::string_view name, const char* otherwise,
           std::initializer_list<std::pair<const char*, T>> known) const {
    const std::string given = text(name, otherwise);
    for (const auto& [text, value] : known)
      if (given == text) return value;
    fail("has no " + std::string(name) + " '" + given + "'");
  }
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  const FileTensor& tensor(std::string_view name) const;
  const Block& block(std::string_view name) const;
  /// An option that is an input in newer opsets, else an attribute; none where neither is given.
  std::optional<std::vector<int64_t>> option(std::size_t input, std::string_view name) const;
  /// A dimension, counted from the front.
  int64_t axis(int64_t dim, int64_t rank) const;

  // --- Types
  /// The type by ONNX's number, as the network has it now.
  DType dtype_of_number(int64_t type) const;

  GraphValues run(const Block& block, GraphValues inputs) { return runtime_.run(block, std::move(inputs)); }
  [[noreturn]] void fail(const std::string& why) const;
  /// "node 'fc/Gemm' (Gemm)".
  std::string where() const;

 private:
  const NodeAttribute* find(std::string_view name) const;
  template <class T>
  const T* get(std::string_view name, const char* kind) const;

  const Node& node_;
  int64_t opset_;
  std::span<const GraphValue* const> inputs_;
  const std::map<std::string, std::shared_ptr<const Block>, std::less<>>& blocks_;
  Runtime& runtime_;
  bool on_host_;
  mutable std::map<std::size_t, Tensor> operands_;  ///< of constants
};

std::string where(const Node& node);

}  // namespace pleat::onnx::imported
