#include "pleat/onnx/graph.h"

#include <limits>
#include <set>

#include "pleat/core/base/format.h"
#include "pleat/core/files/protobuf.h"
#include "pleat/core/tensor/copy.h"

// Fields have the numbers of onnx.proto.

namespace pleat::onnx {
namespace {

using protobuf::bytes_field;
using protobuf::float_field;
using protobuf::integer_field;
using protobuf::integers_field;

std::string message_of(const NodeAttribute& attribute) {
  enum Type : int64_t { float_number = 1, integer = 2, text = 3, integer_list = 7, text_list = 8 };
  std::string bytes = bytes_field(1, attribute.name);
  if (const auto* number = std::get_if<float>(&attribute.value))
    bytes += float_field(2, *number) + integer_field(20, float_number);
  else if (const auto* whole = std::get_if<int64_t>(&attribute.value))
    bytes += integer_field(3, *whole) + integer_field(20, integer);
  else if (const auto* words = std::get_if<std::string>(&attribute.value))
    bytes += bytes_field(4, *words) + integer_field(20, text);
  else if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute.value))
    bytes += integers_field(8, *list) + integer_field(20, integer_list);
  else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    for (const std::string& one : *texts) bytes += bytes_field(9, one);
    bytes += integer_field(20, text_list);
  }
  return bytes;
}

std::string message_of(const Node& node) {
  std::string bytes;
  for (const std::string& input : node.inputs) bytes += bytes_field(1, input);
  for (const std::string& output : node.outputs) bytes += bytes_field(2, output);
  bytes += bytes_field(3, node.name) + bytes_field(4, node.op);
  for (const NodeAttribute& attribute : node.attributes) bytes += bytes_field(5, message_of(attribute));
  return bytes;
}

std::string message_of(const std::string& name, const Tensor& tensor) {
  const Tensor dense = ops::to_format(ops::to_device(tensor, Device()), MemoryFormat::contiguous);
  std::string bytes =
      integers_field(1, dense.shape()) + integer_field(2, type_number(dense.dtype())) + bytes_field(8, name);
  const auto size = static_cast<std::size_t>(dense.numel() * size_of(dense.dtype()));
  return bytes + bytes_field(9, {reinterpret_cast<const char*>(dense.raw()), size});
}

std::string message_of(const Port& port) {
  std::string shape;
  for (const Size& size : port.shape) {
    // Another multiple of the batch has no name of its own.
    const std::string name =
        size == Size{1, 0}
            ? "batch"
            : fmt::format("{}*batch{}", size.scale, size.offset == 0 ? "" : fmt::format("{:+}", size.offset));
    shape += bytes_field(1, size.fixed() ? integer_field(1, size.offset) : bytes_field(2, name));
  }
  const std::string tensor = integer_field(1, type_number(port.dtype)) + bytes_field(2, shape);
  return bytes_field(1, port.name) + bytes_field(2, bytes_field(1, tensor));
}

}  // namespace

int64_t type_number(DType dtype) {
  switch (dtype) {
    case boolean:
      return 9;
    case uint8:
      return 2;
    case int32:
      return 6;
    case int64:
      return 7;
    case bfloat16:
      return 16;
    case float16:
      return 10;
    case float32:
      return 1;
    case float64:
      return 11;
  }
  return 0;
}

void prune(Graph& graph) {
  std::set<std::string> needed;
  for (const Port& output : graph.outputs) needed.insert(output.name);
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool is_needed = false;
    for (const std::string& output : node->outputs) is_needed = is_needed || needed.contains(output);
    if (!is_needed) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(graph.initializers, [&](const auto& entry) { return !needed.contains(entry.first); });
}

std::string bytes_of(const Graph& graph) {
  int64_t total = 0;
  for (const auto& [name, tensor] : graph.initializers) total += tensor.numel() * size_of(tensor.dtype());
  constexpr int64_t most = std::numeric_limits<int32_t>::max() - (int64_t{1} << 24);
  check<ValueError>(total <= most,
                    "export_onnx: the weights take {} bytes, and a file of protobuf holds less than 2^31; "
                    "convert the network to a half type, net.to(float16), or export parts of it",
                    total);
  std::string body;
  body.reserve(static_cast<std::size_t>(total) + (std::size_t{1} << 16));
  for (const Node& node : graph.nodes) body += bytes_field(1, message_of(node));
  body += bytes_field(2, graph.name);
  for (const auto& [name, tensor] : graph.initializers) body += bytes_field(5, message_of(name, tensor));
  for (const Port& input : graph.inputs) body += bytes_field(11, message_of(input));
  for (const Port& output : graph.outputs) body += bytes_field(12, message_of(output));
  std::string model = integer_field(1, ir_version) + bytes_field(2, "pleat") + bytes_field(7, body) +
                      bytes_field(8, bytes_field(1, "") + integer_field(2, opset));
  for (const auto& [key, value] : graph.metadata)
    model += bytes_field(14, bytes_field(1, key) + bytes_field(2, value));
  return model;
}

}  // namespace pleat::onnx
