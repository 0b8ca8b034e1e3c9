// Private header: not installed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/files/read_options.h"
#include "pleat/onnx/graph.h"

/// What an ONNX file says (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), before anything is made
/// of it.

namespace pleat::onnx {

struct FilePort {
  std::string name;
  int64_t type = 0;                     ///< ONNX's number; 0: no tensor, or not said
  bool has_shape = false;               ///< else any rank
  std::vector<std::string> shape = {};  ///< numbers, names of free sizes, or empty
};

struct FileGraph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, FileTensor>> initializers;
  std::vector<FilePort> inputs, outputs;
  std::map<std::string, int64_t> types;  ///< of other values, as far as the file says
};

/// An operator that the file defines by others.
struct FileFunction {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<Node> nodes;
  NodeAttributes defaults;
  std::map<std::string, int64_t> opsets;
};

struct ModelFile {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  ///< by domain; that of ONNX is empty
  FileGraph graph;
  std::vector<FileFunction> functions;
  std::map<std::string, std::string> metadata;
};

/// A node's attribute that a function's caller gives is a text that begins with this, then its name.
constexpr char attribute_reference = '\1';

/// Reads a file and the tensors that lie in files beside it, in its folder. Throws FileError, naming the
/// file, for what is no ONNX, damaged, of types that Pleat has none for (text, complex, float8), nested
/// deeper than 32 graphs, or larger than `memory_limit` in memory; for tensors outside the folder.
ModelFile read_model_file(const std::filesystem::path& path, ReadOptions options);

/// A tensor of a file of its own, as ONNX's test data are.
FileTensor read_tensor_file(const std::filesystem::path& path);

/// ONNX's name of a type by its number: "float", "int8".
std::string type_name(int64_t type);
/// The type that Pleat reads it as: int32 for int8, int16, uint16 and 4 bits, int64 for uint32 and uint64;
/// none for what it lacks.
std::optional<DType> dtype_of(int64_t type);

}  // namespace pleat::onnx
