#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pleat/core/files/protobuf.h"
#include "pleat/core/tensor/tensor.h"
#include "pleat/tests/temporary_directory.h"

/// ONNX files as other programs may write them, good and bad (the field numbers of onnx.proto).

namespace pleat_test {

namespace proto = pleat::protobuf;

inline std::string attribute(const std::string& name, int64_t value) {
  return proto::bytes_field(1, name) + proto::integer_field(3, value) + proto::integer_field(20, 2);
}
inline std::string attribute(const std::string& name, float value) {
  return proto::bytes_field(1, name) + proto::float_field(2, value) + proto::integer_field(20, 1);
}
inline std::string attribute(const std::string& name, const char* value) {
  return proto::bytes_field(1, name) + proto::bytes_field(4, value) + proto::integer_field(20, 3);
}
inline std::string attribute(const std::string& name, const std::vector<int64_t>& values) {
  return proto::bytes_field(1, name) + proto::integers_field(8, values) + proto::integer_field(20, 7);
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return proto::bytes_field(1, name) + proto::bytes_field(6, graph) + proto::integer_field(20, 5);
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {}, const std::string& name = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += proto::bytes_field(1, input);
  for (const std::string& output : outputs) bytes += proto::bytes_field(2, output);
  bytes += proto::bytes_field(3, name) + proto::bytes_field(4, op);
  for (const std::string& each : attributes) bytes += proto::bytes_field(5, each);
  return proto::bytes_field(1, bytes);
}

/// An initializer, by the bytes of its numbers.
inline std::string initializer(const std::string& name, const std::vector<int64_t>& shape, int64_t type,
                               const std::string& raw, const std::string& more = "") {
  return proto::bytes_field(5, proto::integers_field(1, shape) + proto::integer_field(2, type) +
                                   proto::bytes_field(8, name) +
                                   (raw.empty() ? "" : proto::bytes_field(9, raw)) + more);
}
inline std::string initializer(const std::string& name, const pleat::Tensor& t) {
  const int64_t type = t.dtype() == pleat::float32 ? 1
                       : t.dtype() == pleat::int64 ? 7
                       : t.dtype() == pleat::uint8 ? 2
                                                   : 9;
  const std::string raw(reinterpret_cast<const char*>(t.raw()),
                        static_cast<std::size_t>(t.numel()) * size_of(t.dtype()));
  return initializer(name, {t.shape().begin(), t.shape().end()}, type, raw);
}

/// An input (field 11) or output (12); sizes are numbers or names.
inline std::string port(int field, const std::string& name, const std::vector<std::string>& shape,
                        int64_t type = 1) {
  std::string dims;
  for (const std::string& size : shape) {
    const bool is_number = !size.empty() && size.find_first_not_of("0123456789") == std::string::npos;
    dims += proto::bytes_field(
        1, is_number ? proto::integer_field(1, std::stoll(size)) : proto::bytes_field(2, size));
  }
  const std::string tensor = proto::integer_field(1, type) + proto::bytes_field(2, dims);
  return proto::bytes_field(
      field, proto::bytes_field(1, name) + proto::bytes_field(2, proto::bytes_field(1, tensor)));
}
inline std::string input(const std::string& name, const std::vector<std::string>& shape, int64_t type = 1) {
  return port(11, name, shape, type);
}
inline std::string output(const std::string& name) {
  return proto::bytes_field(12, proto::bytes_field(1, name));
}

/// A file of a graph.
inline std::string model(const std::string& graph, int64_t opset = 18) {
  return proto::integer_field(1, 8) + proto::bytes_field(2, "a test") + proto::bytes_field(7, graph) +
         proto::bytes_field(8, proto::bytes_field(1, "") + proto::integer_field(2, opset));
}

/// In a folder of its own.
class ModelInFolder {
 public:
  explicit ModelInFolder(const std::string& bytes) { write_bytes(path(), std::string_view(bytes)); }
  std::filesystem::path path() const { return folder_ / "model.onnx"; }
  const TemporaryDirectory& folder() const { return folder_; }

 private:
  TemporaryDirectory folder_;
};

}  // namespace pleat_test
