#include "pleat/bench/op_survey.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pleat/bench/ask/answer.h"
#include "pleat/bench/options.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using Json = nlohmann::json;

/// What letters stand for in the three problems of a row: small (some thousand elements), middle (some
/// hundred thousand), large (about ten million). Not all are powers of two, and few are multiples of a
/// vector.
const std::map<std::string, std::array<int64_t, 3>> letters{
    {"E", {4000, 300'000, 10'000'000}},  // elements
    {"R", {32, 500, 4000}},              // rows
    {"L", {100, 768, 2500}},             // columns
    {"S", {500, 40'000, 1'000'000}},     // many rows, for short ones of literal length
    {"N", {2, 16, 64}},                  // images
    {"C", {16, 32, 64}},                 // channels
    {"K", {32, 512, 2048}},              // many channels, of 7 x 7 pixels
    {"H", {8, 28, 56}},                  // pixels a side, of height
    {"W", {8, 28, 56}},                  // and of width
    {"G", {32, 128, 224}},               // pixels a side of images of few channels
    {"D", {4, 8, 14}},                   // voxels a side
    {"T", {100, 800, 2500}},             // of a signal
    {"M", {32, 192, 1024}},              // of square matrices
    {"A", {16, 64, 256}},                // of a sequence, for attention: quadratic
    {"V", {100, 2000, 30'000}},          // words
};

Json size_of(const std::string& text, std::size_t problem) {
  const auto letter = letters.find(text);
  return letter == letters.end() ? std::stoll(text) : letter->second.at(problem);
}

/// "u:N,C,H,W" as {"kind": "u", "shape": [2, 16, 8, 8]}; "<V" names a bound by its letter, too.
Json operand_of(const std::string& text, std::size_t problem) {
  const std::size_t colon = text.find(':');
  std::string kind = colon == std::string::npos ? "" : text.substr(0, colon);
  if (kind.starts_with('<')) kind = "<" + size_of(kind.substr(1), problem).dump();
  Json shape = Json::array();
  std::istringstream sizes(colon == std::string::npos ? text : text.substr(colon + 1));
  for (std::string size; std::getline(sizes, size, ',');) shape.push_back(size_of(size, problem));
  return {{"kind", kind}, {"shape", shape}};
}

Json operands_of(const OpRow& row, std::size_t problem) {
  Json operands = Json::array();
  std::istringstream words(row.operands);
  for (std::string word; words >> word;) operands.push_back(operand_of(word, problem));
  return operands;
}

/// Kinds: "" normal numbers, "u" of (0.1, 0.9), "t" the same for a target, "bool", "byte", "int", "<n"
/// indices below n, "perm" an order of indices, and the floating types by their names.
Tensor make_operand(const Json& operand, const std::string& format) {
  const std::string kind = operand.at("kind");
  const Shape shape = operand.at("shape");
  if (kind == "perm") return randperm(shape.at(0));
  if (kind == "int") return randint(-1000, 1000, shape);
  if (kind.starts_with('<')) return randint(0, std::stoll(kind.substr(1)), shape);
  Tensor x = kind == "u" || kind == "t" ? rand(shape) * 0.8 + 0.1
             : kind == "byte"           ? randint(0, 256, shape).to(uint8)
                                        : randn(shape);
  if (kind == "bool") x = x > 0;
  if (dtypes.count(kind) > 0) x = x.to(dtypes.at(kind));
  return shape.size() >= 4 && format == "channels_last" ? x.to(MemoryFormat::channels_last) : x;
}

bool is_differentiated(const Json& operand) {
  const std::string kind = operand.at("kind");
  return kind.empty() || kind == "u" || (dtypes.count(kind) > 0 && is_floating(dtypes.at(kind)));
}

const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = pointwise_rows();
    for (const auto& more : {reduction_rows(), movement_rows()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return rows;
}

const OpRow& row_of(const std::string& family, const std::string& name) {
  for (const OpRow& row : op_rows())
    if (family == row.family && name == row.name) return row;
  fail<ValueError>("there is no row \"{}\" in \"{}\"", name, family);
}

}  // namespace

Json op_problems() {
  Json problems = Json::array();
  for (const OpRow& row : op_rows()) {
    Json last;
    for (std::size_t i = 0; i < 3; ++i) {
      const Json operands = operands_of(row, i);
      if (i > 0 && operands == last) break;  // no letters
      last = operands;
      std::string name = row.name;
      for (const Json& operand : operands)
        name += fmt::format(" {}", fmt::join(operand.at("shape").get<Shape>(), "x"));
      problems.push_back({{"group", row.family},
                          {"name", name},
                          {"row", row.name},
                          {"torch", row.torch},
                          {"stateful", row.prepared != nullptr},
                          {"passes", row.passes},
                          {"operands", operands}});
    }
  }
  return problems;
}

Work prepare_op(const Json& request) {
  const OpRow& row = row_of(request.at("group"), request.at("row"));
  const std::string pass = request.at("pass");
  if (std::find(row.passes.begin(), row.passes.end(), pass) == row.passes.end()) return nullptr;
  if (row.prepared) return row.prepared();
  test::Tensors operands, inputs;
  for (const Json& operand : request.at("operands")) {
    operands.push_back(make_operand(operand, request.at("format")));
    if (pass != "forward" && is_differentiated(operand))
      inputs.push_back(operands.back().set_requires_grad());
  }
  operands.resize(4);
  if (pass == "forward")
    return [call = row.call, operands] {
      const NoGrad guard;
      (void)call(operands);
    };
  const auto run = [call = row.call, operands] {
    test::Tensors outputs = call(operands).tensors();
    std::erase_if(outputs, [](const Tensor& y) { return !y.requires_grad(); });
    return outputs;
  };
  const test::Tensors outputs = run();
  Grads dy;
  for (const Tensor& y : outputs) dy.push_back(ask::gradient_for(y).to(y.dtype()));
  if (pass == "backward") return [=] { (void)grad(outputs, inputs, dy, {.retain_graph = true}); };
  return [=] { (void)grad(run(), inputs, dy); };
}

}  // namespace pleat::bench
