#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

/// Reads ONNX files (the field numbers of onnx.proto), as far as tests look into them.

namespace pleat_test {

struct WireField {
  int number;
  uint64_t value = 0;  ///< of a varint or four bytes
  std::string bytes = {};
};

inline uint64_t read_varint(std::string_view bytes, std::size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(at < bytes.size());
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

inline std::vector<WireField> fields_of(std::string_view bytes) {
  std::vector<WireField> fields;
  for (std::size_t at = 0; at < bytes.size();) {
    const uint64_t key = read_varint(bytes, at);
    WireField field{.number = static_cast<int>(key >> 3)};
    if ((key & 7) == 0) {
      field.value = read_varint(bytes, at);
    } else {
      REQUIRE(((key & 7) == 2 || (key & 7) == 5));
      const uint64_t length = (key & 7) == 5 ? 4 : read_varint(bytes, at);
      REQUIRE(at + length <= bytes.size());
      field.bytes = bytes.substr(at, length);
      at += length;
    }
    fields.push_back(field);
  }
  return fields;
}

inline std::vector<int64_t> numbers_of(std::string_view packed) {
  std::vector<int64_t> numbers;
  for (std::size_t at = 0; at < packed.size();)
    numbers.push_back(static_cast<int64_t>(read_varint(packed, at)));
  return numbers;
}

struct OnnxNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, std::vector<int64_t>> integers;
};

struct OnnxTensor {
  std::vector<int64_t> dims;
  int64_t type = 0;
  std::string raw;
};

struct OnnxPort {
  std::string name;
  int64_t type = 0;
  std::vector<std::string> dims;  ///< numbers or names
  bool operator==(const OnnxPort&) const = default;
};

struct OnnxFile {
  int64_t ir_version = 0, opset = 0;
  std::map<std::string, std::string> metadata;
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor> initializers;
  std::vector<OnnxPort> inputs, outputs;

  std::vector<std::string> ops() const {
    std::vector<std::string> result;
    for (const OnnxNode& node : nodes) result.push_back(node.op);
    return result;
  }
};

inline OnnxNode read_node(std::string_view bytes) {
  OnnxNode node;
  for (const WireField& field : fields_of(bytes)) {
    if (field.number == 1) node.inputs.push_back(field.bytes);
    if (field.number == 2) node.outputs.push_back(field.bytes);
    if (field.number == 3) node.name = field.bytes;
    if (field.number == 4) node.op = field.bytes;
    if (field.number != 5) continue;
    std::string name;
    for (const WireField& part : fields_of(field.bytes)) {
      if (part.number == 1) name = part.bytes;
      if (part.number == 3) node.integers[name] = {static_cast<int64_t>(part.value)};
      if (part.number == 8) node.integers[name] = numbers_of(part.bytes);
    }
  }
  return node;
}

inline OnnxPort read_port(std::string_view bytes) {
  OnnxPort port;
  for (const WireField& field : fields_of(bytes)) {
    if (field.number == 1) port.name = field.bytes;
    if (field.number != 2) continue;
    for (const WireField& part : fields_of(fields_of(field.bytes).at(0).bytes)) {
      if (part.number == 1) port.type = static_cast<int64_t>(part.value);
      if (part.number != 2) continue;
      for (const WireField& dim : fields_of(part.bytes)) {
        const WireField size = fields_of(dim.bytes).at(0);
        port.dims.push_back(size.number == 1 ? std::to_string(size.value) : size.bytes);
      }
    }
  }
  return port;
}

inline OnnxFile read_onnx(const std::filesystem::path& path) {
  const std::vector<unsigned char> content = read_bytes(path);
  OnnxFile file;
  std::string graph;
  for (const WireField& field : fields_of({reinterpret_cast<const char*>(content.data()), content.size()})) {
    if (field.number == 1) file.ir_version = static_cast<int64_t>(field.value);
    if (field.number == 7) graph = field.bytes;
    if (field.number == 8) file.opset = static_cast<int64_t>(fields_of(field.bytes).at(1).value);
    if (field.number == 14) {
      const auto entry = fields_of(field.bytes);
      file.metadata[entry.at(0).bytes] = entry.at(1).bytes;
    }
  }
  for (const WireField& field : fields_of(graph)) {
    if (field.number == 1) file.nodes.push_back(read_node(field.bytes));
    if (field.number == 11) file.inputs.push_back(read_port(field.bytes));
    if (field.number == 12) file.outputs.push_back(read_port(field.bytes));
    if (field.number != 5) continue;
    std::string name;
    OnnxTensor tensor;
    for (const WireField& part : fields_of(field.bytes)) {
      if (part.number == 1) tensor.dims = numbers_of(part.bytes);
      if (part.number == 2) tensor.type = static_cast<int64_t>(part.value);
      if (part.number == 8) name = part.bytes;
      if (part.number == 9) tensor.raw = part.bytes;
    }
    file.initializers[name] = tensor;
  }
  return file;
}

}  // namespace pleat_test
