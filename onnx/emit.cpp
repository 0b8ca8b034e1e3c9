#include "pleat/onnx/emit.h"

#include <algorithm>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"

namespace pleat::onnx {

std::string GraphBuilder::unique(const std::string& stem) {
  std::string name = stem;
  while (taken_.contains(name)) name = fmt::format("{}_{}", stem, ++taken_[stem]);
  taken_.emplace(name, 0);
  return name;
}

std::string GraphBuilder::name_of(int value) {
  const auto found = names_.find(value);
  if (found != names_.end()) return found->second;
  const Value& given = plan_.trace.values[static_cast<std::size_t>(value)];
  const SizeList& shape = plan_.shapes[static_cast<std::size_t>(value)];
  std::string name;
  if (given.kind == Value::Kind::state) {
    name = unique(given.name);
    graph.initializers.emplace(name, given.tensor);
  } else if (std::all_of(shape.begin(), shape.end(), [](const Size& size) { return size.fixed(); })) {
    name = constant(given.tensor);
  } else {
    // The same along the sizes that depend on the batch.
    Shape once = given.tensor.shape();
    for (std::size_t d = 0; d < once.size(); ++d)
      if (!shape[d].fixed()) once[d] = 1;
    const Tensor one = given.tensor.as_strided(once, given.tensor.strides(), given.tensor.offset());
    name = node("Expand", "", {constant(one), sizes(shape)}, {}, 1)[0];
  }
  set_name(value, name);
  return name;
}

std::string GraphBuilder::constant(const Tensor& tensor, const std::string& stem) {
  std::string content;
  if (tensor.numel() <= 16) {
    const Tensor dense = ops::to_format(ops::to_device(tensor, Device()), MemoryFormat::contiguous);
    content = to_string(tensor.shape()) + std::string(pleat::name(tensor.dtype())) +
              std::string(reinterpret_cast<const char*>(dense.raw()),
                          static_cast<std::size_t>(dense.numel() * size_of(dense.dtype())));
    if (const auto found = numbers_.find(content); found != numbers_.end()) return found->second;
  }
  const std::string name = unique(stem);
  graph.initializers.emplace(name, tensor);
  if (!content.empty()) numbers_.emplace(content, name);
  return name;
}

std::string GraphBuilder::size(const Size& size) {
  const auto number = [&](int64_t value) {
    return constant(full({1}, value, {.dtype = int64, .device = {}}));
  };
  if (size.fixed()) return number(size.offset);
  if (batch_.empty())
    batch_ = node("Shape", "", {name_of(plan_.trace.inputs[static_cast<std::size_t>(plan_.batch_input)])},
                  {{"start", plan_.batch_dim}, {"end", plan_.batch_dim + 1}}, 1)[0];
  std::string name = batch_;
  if (size.scale != 1) name = node("Mul", "", {name, number(size.scale)}, {}, 1)[0];
  if (size.offset != 0) name = node("Add", "", {name, number(size.offset)}, {}, 1)[0];
  return name;
}

std::string GraphBuilder::sizes(const SizeList& list) {
  if (std::all_of(list.begin(), list.end(), [](const Size& one) { return one.fixed(); })) {
    std::vector<int64_t> values;
    for (const Size& one : list) values.push_back(one.offset);
    return constant(from_vector(values, {std::ssize(values)}, Device()));
  }
  if (list.size() == 1) return size(list[0]);
  std::vector<std::string> parts;
  for (const Size& one : list) parts.push_back(size(one));
  return node("Concat", "", std::move(parts), {{"axis", int64_t{0}}}, 1)[0];
}

std::vector<std::string> GraphBuilder::node(const std::string& op, const std::string& path,
                                            std::vector<std::string> inputs, NodeAttributes attributes,
                                            std::size_t outputs) {
  const std::string name = unique(path.empty() ? op : path + "/" + op);
  Node made{op, name, std::move(inputs), {}, std::move(attributes)};
  while (!made.inputs.empty() && made.inputs.back().empty()) made.inputs.pop_back();
  for (std::size_t i = 0; i < outputs; ++i) made.outputs.push_back(unique(fmt::format("{}:{}", name, i)));
  graph.nodes.push_back(made);
  return made.outputs;
}

std::string Operand::name(Emit& emit) const {
  return number_ ? emit.constant(*number_, emit.out_dtype()).name_ : name_;
}

Operand node_of(const char* op, const Operands& inputs) {
  const auto value = std::find_if(inputs.begin(), inputs.end(), [](const Operand& x) { return x.emit(); });
  return value->emit()->node(op, inputs);
}

int64_t Emit::fixed_size(std::size_t i, int64_t dim) const {
  const Size& size = shape(i)[static_cast<std::size_t>(dim < 0 ? dim + rank(i) : dim)];
  if (!size.fixed())
    refuse(fmt::format(
        "it needs the size of dimension {}, which is the batch's; export for one size of the batch "
        "alone: .batch_dims = {{}}",
        dim));
  return size.offset;
}

int64_t Emit::dim(const std::string& attribute, int64_t rank) const {
  const int64_t dim = integer(attribute);
  return dim < 0 ? dim + rank : dim;
}

const SizeList& Emit::sizes(const std::string& attribute) const {
  option(attribute);
  return plan_.numbers[index_].at(attribute);
}

std::vector<int64_t> Emit::integers(const std::string& attribute) const {
  std::vector<int64_t> result;
  for (const Size& size : sizes(attribute)) {
    if (!size.fixed())
      refuse(
          fmt::format("its option {} depends on the size of the batch; export for one size alone: "
                      ".batch_dims = {{}}",
                      attribute));
    result.push_back(size.offset);
  }
  return result;
}

const Attribute::Value& Emit::option(const std::string& attribute) const {
  for (const Attribute& one : call_.attributes)
    if (one.name == attribute) return one.value;
  refuse("it does not say its option " + attribute);
}

double Emit::number(const std::string& attribute) const {
  const auto* real = std::get_if<double>(&option(attribute));
  return real != nullptr ? *real : static_cast<double>(integer(attribute));
}

std::string Emit::text(const std::string& attribute) const {
  return std::string(std::get<std::string_view>(option(attribute)));
}

Operands Emit::nodes(const std::string& op, const Operands& inputs, NodeAttributes attributes,
                     std::size_t outputs) {
  std::vector<std::string> names;
  for (const Operand& input : inputs) names.push_back(input.name(*this));
  Operands results;
  for (std::string& name : builder_.node(op, call_.module, std::move(names), std::move(attributes), outputs))
    results.push_back(of(std::move(name)));
  return results;
}

Operand Emit::constant(Scalar value, DType dtype, const Shape& shape) {
  return constant(full(shape, value, {.dtype = dtype, .device = Device()}));
}

Operand Emit::number_of(const std::string& attribute) {
  if (std::holds_alternative<int64_t>(option(attribute))) return constant(integer(attribute), out_dtype());
  return number(attribute);
}

Operand Emit::list(const std::vector<int64_t>& values) {
  return constant(from_vector(values, {std::ssize(values)}, Device()));
}

Operand Emit::reshape(const Operand& x, const SizeList& shape) {
  const auto dynamic =
      std::count_if(shape.begin(), shape.end(), [](const Size& size) { return !size.fixed(); });
  const bool has_elements =
      std::none_of(shape.begin(), shape.end(), [](const Size& size) { return size == Size{}; });
  if (dynamic != 1 || !has_elements) return node("Reshape", {x, list(shape)}, {{"allowzero", 1}});
  SizeList target = shape;
  for (Size& size : target)
    if (!size.fixed()) size = {0, -1};
  return node("Reshape", {x, list(target)});
}

Operand Emit::slice(const Operand& x, int64_t dim, const Size& start, const Size& end, int64_t step) {
  return node("Slice", {x, list(SizeList{start}), list(SizeList{end}), list(std::vector<int64_t>{dim}),
                        list(std::vector<int64_t>{step})});
}

void Emit::refuse(const std::string& why) const {
  throw ValueError(fmt::format("export_onnx: {} cannot be written: {}", call_.where(), why));
}

}  // namespace pleat::onnx
