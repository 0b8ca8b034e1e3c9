#include "pleat/onnx/import/node_call.h"

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/onnx/model_file.h"

namespace pleat::onnx::imported {

std::string where(const Node& node) {
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  if (!node.name.empty()) return fmt::format("node '{}' ({})", node.name, op);
  return node.outputs.empty() ? fmt::format("a node ({})", op)
                              : fmt::format("the node of '{}' ({})", node.outputs[0], op);
}

std::string NodeCall::where() const { return imported::where(node_); }

void NodeCall::fail(const std::string& why) const { throw ValueError(where() + ": " + why); }

const GraphValue& NodeCall::value(std::size_t i) const {
  if (!has(i)) fail(fmt::format("needs input {}", i));
  return *inputs_[i];
}

const Tensor& NodeCall::x(std::size_t i) const {
  const GraphValue& given = value(i);
  if (given.sequence) fail(fmt::format("input {} is a sequence, and should be a tensor", i));
  if (!given.on_host || on_host_) return given.tensor;
  const auto known = operands_.find(i);
  if (known != operands_.end()) return known->second;
  return operands_.emplace(i, runtime_.as_operand(given)).first->second;
}

const Tensor& NodeCall::x_or_none(std::size_t i) const {
  static const auto& none = *new Tensor;
  return has(i) ? x(i) : none;
}

std::vector<Tensor> NodeCall::all() const {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs(); ++i) tensors.push_back(x(i));
  return tensors;
}

std::vector<int64_t> NodeCall::integers(std::size_t i) const {
  const Tensor& given = value(i).tensor;
  if (!given.defined() || is_floating(given.dtype())) fail(fmt::format("input {} should be integers", i));
  return given.to_vector<int64_t>();
}

std::vector<double> NodeCall::numbers(std::size_t i) const {
  const Tensor& given = value(i).tensor;
  if (!given.defined()) fail(fmt::format("input {} should be numbers", i));
  return given.to_vector<double>();
}

int64_t NodeCall::integer(std::size_t i) const {
  const std::vector<int64_t> list = integers(i);
  if (list.size() != 1) fail(fmt::format("input {} should be one integer, and has {}", i, list.size()));
  return list[0];
}

double NodeCall::number(std::size_t i) const {
  const std::vector<double> list = numbers(i);
  if (list.size() != 1) fail(fmt::format("input {} should be one number, and has {}", i, list.size()));
  return list[0];
}

std::optional<Scalar> NodeCall::constant(std::size_t i, int64_t rank) const {
  const GraphValue& given = value(i);
  if (on_host_ || !given.on_host || given.tensor.numel() != 1 || given.tensor.rank() > rank) return {};
  if (is_floating(given.tensor.dtype())) return Scalar(given.tensor.to_vector<double>()[0]);
  if (given.tensor.dtype() == boolean) return {};
  return Scalar(given.tensor.to_vector<int64_t>()[0]);
}

const NodeAttribute* NodeCall::find(std::string_view name) const {
  for (const NodeAttribute& attribute : node_.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

template <class T>
const T* NodeCall::get(std::string_view name, const char* kind) const {
  const NodeAttribute* attribute = find(name);
  if (attribute == nullptr) return nullptr;
  const T* value = std::get_if<T>(&attribute->value);
  if (value == nullptr) fail(fmt::format("attribute '{}' should be {}", name, kind));
  return value;
}

int64_t NodeCall::integer(std::string_view name, int64_t otherwise) const {
  const auto* value = get<int64_t>(name, "an integer");
  return value == nullptr ? otherwise : *value;
}

double NodeCall::number(std::string_view name, double otherwise) const {
  const auto* value = get<float>(name, "a number");
  return value == nullptr ? otherwise : double{*value};
}

std::string NodeCall::text(std::string_view name, const char* otherwise) const {
  const auto* value = get<std::string>(name, "a text");
  return value == nullptr ? otherwise : *value;
}

std::vector<int64_t> NodeCall::integers(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* value = get<std::vector<int64_t>>(name, "a list of integers");
  return value == nullptr ? otherwise : *value;
}

std::vector<double> NodeCall::numbers(std::string_view name) const {
  const auto* value = get<std::vector<float>>(name, "a list of numbers");
  return value == nullptr ? std::vector<double>() : std::vector<double>(value->begin(), value->end());
}

std::vector<std::string> NodeCall::texts(std::string_view name) const {
  const auto* value = get<std::vector<std::string>>(name, "a list of texts");
  return value == nullptr ? std::vector<std::string>() : *value;
}

const FileTensor& NodeCall::tensor(std::string_view name) const {
  const auto* value = get<FileTensor>(name, "a tensor");
  if (value == nullptr) fail(fmt::format("has no attribute '{}'", name));
  return *value;
}

const Block& NodeCall::block(std::string_view name) const {
  const auto found = blocks_.find(name);
  if (found == blocks_.end()) fail(fmt::format("has no graph '{}'", name));
  return *found->second;
}

std::optional<std::vector<int64_t>> NodeCall::option(std::size_t input, std::string_view name) const {
  if (has(input)) return integers(input);
  if (find(name) == nullptr) return std::nullopt;
  if (std::holds_alternative<int64_t>(find(name)->value)) return std::vector{integer(name, 0)};
  return integers(name);
}

int64_t NodeCall::axis(int64_t dim, int64_t rank) const {
  if (dim < -rank || dim >= rank) fail(fmt::format("axis {} is none of a tensor of rank {}", dim, rank));
  return dim < 0 ? dim + rank : dim;
}

DType NodeCall::dtype_of_number(int64_t type) const {
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype) fail(fmt::format("is of type {}, which Pleat does not have", type_name(type)));
  return runtime_.dtype_now(*dtype);
}

}  // namespace pleat::onnx::imported
