#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pleat/core/tensor/tensor.h"

// Recorded PyTorch traces, as tests/fixtures/README.md describes them.
namespace pleat::test {

using Json = nlohmann::json;

/// All of tests/fixtures/NAME.json, read once a process.
/// Throws FileError when it cannot be read or is not JSON.
const Json& fixture(const std::string& name);

/// The cases whose "op" is `op`, in the order of the file.
/// Throws ValueError when there is none, so that a loop over them is never empty.
std::vector<Json> fixture_cases(const std::string& name, const std::string& op);

/// The case with that "name". Throws ValueError when there is none.
const Json& fixture_case(const std::string& name, const std::string& case_name);

/// {"shape": [...], "dtype": "float64" or "int64", "data": [...]} as a tensor.
/// Throws DTypeError for another dtype, ShapeError when shape and data disagree.
Tensor tensor_from(const Json& json);

/// An object of tensors, such as a case's "inputs".
std::map<std::string, Tensor> tensors_from(const Json& json);

}  // namespace pleat::test
