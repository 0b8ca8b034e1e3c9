#include "pleat/tests/fixture.h"

#include <fstream>

#include "pleat/core/base/error.h"
#include "pleat/core/tensor/create.h"

namespace pleat::test {

const Json& fixture(const std::string& name) {
  static std::map<std::string, Json> files;
  if (const auto known = files.find(name); known != files.end()) return known->second;

  const std::string path = std::string(PLEAT_FIXTURE_DIR) + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw FileError("fixture: cannot open " + path);
  try {
    return files.emplace(name, Json::parse(file)).first->second;
  } catch (const Json::parse_error& error) {
    throw FileError("fixture: " + path + " must be JSON: " + error.what());
  }
}

std::vector<Json> fixture_cases(const std::string& name, const std::string& op) {
  std::vector<Json> cases;
  for (const Json& entry : fixture(name).at("cases"))
    if (entry.at("op") == op) cases.push_back(entry);
  if (cases.empty())
    throw ValueError("fixture: " + name + ".json must have a case of " + op + ", it has none");
  return cases;
}

const Json& fixture_case(const std::string& name, const std::string& case_name) {
  for (const Json& entry : fixture(name).at("cases"))
    if (entry.at("name") == case_name) return entry;
  throw ValueError("fixture: " + name + ".json must have the case " + case_name + ", it has not");
}

Tensor tensor_from(const Json& json) {
  Shape shape = json.at("shape").get<std::vector<int64_t>>();
  const std::string dtype = json.at("dtype");
  if (dtype == "float64") {
    std::vector<double> data;  // "nan", "inf" and "-inf" are strings
    for (const Json& number : json.at("data"))
      data.push_back(number.is_string() ? std::stod(number.get<std::string>()) : number.get<double>());
    return from_vector(data, std::move(shape));
  }
  if (dtype == "int64") return from_vector(json.at("data").get<std::vector<int64_t>>(), std::move(shape));
  throw DTypeError("fixture: a tensor must be float64 or int64, got " + dtype);
}

std::map<std::string, Tensor> tensors_from(const Json& json) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : json.items()) tensors.emplace(name, tensor_from(tensor));
  return tensors;
}

}  // namespace pleat::test
