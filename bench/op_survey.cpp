// The survey's rows as problems with operands: what letters and kinds stand for, and how each pass of a row
// is made ready to be timed.
#include "pleat/bench/op_survey.h"

#include <algorithm>
#include <array>
#include <regex>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pleat/bench/ask/compare.h"
#include "pleat/bench/measure.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using Json = nlohmann::json;
using Letters = std::map<std::string, std::array<int64_t, 3>>;

/// What letters stand for in the three problems of a row: small (some thousand elements), middle (some
/// hundred thousand), large (about ten million). Not all are powers of two, and few are multiples of a
/// vector.
const Letters usual_letters{
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

std::vector<std::string> parts_of(const std::string& text, const std::string& between) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + between.size()) {
    end = text.find(between, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

Json size_of(const std::string& text, std::size_t problem, const Letters& letters) {
  const auto letter = letters.find(text);
  return letter == letters.end() ? std::stoll(text) : letter->second.at(problem);
}

/// "u:N,C,H,W" as {"kind": "u", "shape": [2, 16, 8, 8]}; "<V" names a bound by its letter, too.
Json operand_of(const std::string& text, std::size_t problem, const Letters& letters) {
  const std::size_t colon = text.find(':');
  std::string kind = colon == std::string::npos ? "" : text.substr(0, colon);
  if (kind.starts_with('<')) kind = "<" + size_of(kind.substr(1), problem, letters).dump();
  Json shape = Json::array();
  for (const std::string& size : parts_of(colon == std::string::npos ? text : text.substr(colon + 1), ","))
    shape.push_back(size_of(size, problem, letters));
  return {{"kind", kind}, {"shape", shape}};
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
  return kind.empty() || kind == "u" || dtypes.count(kind) > 0;
}

using test::OpRow;
using test::Passes;

std::vector<const char*> names_of(Passes passes) {
  if (passes == Passes::forward) return {"forward"};
  return {"forward", passes == Passes::both ? "backward" : "training"};
}

}  // namespace

std::string python_of(const std::string& call) {
  std::string text = std::regex_replace(call, std::regex(R"(\{(\.[^{}]*(\{[^{}]*\})?[^{}]*)\})"), "$1");
  text = std::regex_replace(text, std::regex(R"(([ (])\.(\w+) = )"), "$1$2=");
  for (const auto& [from, to] : {std::pair{"\\{", "("}, {"\\}", ")"}, {"\\btrue\\b", "True"}})
    text = std::regex_replace(text, std::regex(from), to);
  return text;
}

Json op_problems(const std::map<std::string, int64_t>& sizes) {
  Letters letters = usual_letters;
  for (const auto& [letter, size] : sizes) {
    check<ValueError>(letters.count(letter) > 0, "there is no size \"{}\"; there are E, R, L, S, N, C, ...",
                      letter);
    letters[letter].fill(size);
  }
  Json problems = Json::array();
  for (const OpRow& row : test::survey_rows()) {
    const std::size_t slash = row.problems.find('/');
    for (const std::string& problem : parts_of(row.problems.substr(slash + 1), "; ")) {
      const std::size_t colon = problem.find(": ");
      std::vector<Json> all;
      for (std::size_t i = 0; i < 3; ++i) {
        Json operands = Json::array();
        for (const std::string& operand : parts_of(problem.substr(colon + 2), " "))
          operands.push_back(operand_of(operand, i, letters));
        if (all.empty() || operands != all.back()) all.push_back(operands);
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::string name = problem.substr(0, colon);
        for (const Json& operand : all[i])
          name += fmt::format(" {}", fmt::join(operand.at("shape").get<Shape>(), "x"));
        problems.push_back({{"group", row.problems.substr(0, slash)},
                            {"name", name},
                            {"row", problem.substr(0, colon)},
                            {"size", all.size() == 1 ? ""
                                     : i == 0        ? "small"
                                     : i == 1        ? "middle"
                                                     : "large"},
                            {"torch", python_of(row.torch)},
                            {"stateful", row.prepared != nullptr},
                            {"passes", names_of(row.passes)},
                            {"operands", all[i]}});
      }
    }
  }
  return problems;
}

PreparedOp prepare_op(const Json& request) {
  const std::string group = request.at("group"), name = request.at("row"), pass = request.at("pass");
  const auto has = [&](const OpRow& row) {
    return row.problems.starts_with(group + '/') &&
           (row.problems.find('/' + name + ": ") == group.size() ||
            row.problems.find("; " + name + ": ") != std::string::npos);
  };
  const auto row = std::find_if(test::survey_rows().begin(), test::survey_rows().end(), has);
  check<ValueError>(row != test::survey_rows().end(), "there is no row \"{}\" in \"{}\"", name, group);
  const auto passes = names_of(row->passes);
  if (std::find(passes.begin(), passes.end(), pass) == passes.end()) return {};
  if (row->prepared) return {row->prepared()};
  Tensors operands, inputs;
  for (const Json& operand : request.at("operands")) {
    operands.push_back(make_operand(operand, request.at("format")));
    if (pass != "forward" && is_differentiated(operand))
      inputs.push_back(operands.back().set_requires_grad());
  }
  const double read = bytes_of(operands);
  operands.resize(4);
  if (pass == "forward") {
    const Work run = [call = row->call, operands] {
      const NoGrad guard;
      (void)call(operands);
    };
    return {run, read + bytes_of(no_grad([&] { return row->call(operands).tensors(); }))};
  }
  const auto run = [call = row->call, operands] {
    Tensors outputs = call(operands).tensors();
    std::erase_if(outputs, [](const Tensor& y) { return !y.requires_grad(); });
    return outputs;
  };
  const Tensors outputs = run();
  Grads dy;
  for (const Tensor& y : outputs) dy.push_back(ask::gradient_for(y).to(y.dtype()));
  const double moved = read + bytes_of(outputs) + bytes_of(inputs);
  if (pass == "backward") return {[=] { (void)grad(outputs, inputs, dy, {.retain_graph = true}); }, moved};
  return {[=] { (void)grad(run(), inputs, dy); }, moved};
}

}  // namespace pleat::bench
