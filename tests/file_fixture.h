#pragma once

#include <string>
#include <vector>

#include "pleat/core/tensor/tensor.h"
#include "pleat/tests/fixture.h"

namespace pleat::test {

/// The bytes of a case of files.json.
inline std::vector<unsigned char> file_bytes(const Json& file_case) {
  const std::string hex = file_case.at("file");
  std::vector<unsigned char> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

/// Whether `tensor` has the shape and the values of an expected one, whatever the types.
inline bool holds(const Tensor& tensor, const Json& expected) {
  const Tensor wanted = tensor_from(expected);
  if (tensor.shape() != wanted.shape()) return false;
  return wanted.dtype() == int64 ? tensor.to_vector<int64_t>() == wanted.to_vector<int64_t>()
                                 : tensor.to_vector<double>() == wanted.to_vector<double>();
}

}  // namespace pleat::test
