// Private header: not installed.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/onnx/plan.h"

/// A graph of ONNX (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto) as it is put together, and its
/// bytes.

namespace pleat::onnx {

/// The version of the operators, and that of the file format which goes with it.
constexpr int64_t opset = 18;
constexpr int64_t ir_version = 8;

/// A tensor of a file, and ONNX's number of its type there, which Pleat may lack: 3 is int8, read as int32.
struct FileTensor {
  Tensor tensor;
  int64_t type = 0;
};
struct FileGraph;  // onnx/model_file.h

struct NodeAttribute {
  NodeAttribute() = default;
  template <std::integral Number>
  NodeAttribute(std::string attribute, Number number)
      : name(std::move(attribute)), value(static_cast<int64_t>(number)) {}
  NodeAttribute(std::string attribute, double number)
      : name(std::move(attribute)), value(static_cast<float>(number)) {}
  NodeAttribute(std::string attribute, const char* text)
      : name(std::move(attribute)), value(std::string(text)) {}
  NodeAttribute(std::string attribute, std::vector<int64_t> list)
      : name(std::move(attribute)), value(std::move(list)) {}
  NodeAttribute(std::string attribute, std::vector<std::string> texts)
      : name(std::move(attribute)), value(std::move(texts)) {}

  std::string name;
  /// The last three are only read.
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<std::string>,
               std::vector<float>, FileTensor, std::shared_ptr<FileGraph>>
      value;
};
using NodeAttributes = std::vector<NodeAttribute>;

struct Node {
  std::string op;
  std::string name;
  std::vector<std::string> inputs, outputs;
  NodeAttributes attributes;
  std::string domain = {};                        ///< of the operator; empty: ONNX's own
  std::map<std::string, std::string> notes = {};  ///< that an exporter left; only read
};

/// An input or output of the graph. A size that is not fixed is written as the batch.
struct Port {
  std::string name;
  DType dtype;
  SizeList shape;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::map<std::string, Tensor> initializers;
  std::vector<Port> inputs, outputs;
  std::map<std::string, std::string> metadata;
};

/// ONNX's number for a type.
int64_t type_number(DType dtype);

/// Leaves out nodes and initializers that no output needs.
void prune(Graph& graph);

/// The file's content. Throws ValueError where protobuf cannot hold it: 2 GB and more.
std::string bytes_of(const Graph& graph);

}  // namespace pleat::onnx
