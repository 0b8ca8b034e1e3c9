// docs/modules.md lists what the headers declare, and of functions what the table of op cases runs. Each name
// has a comment that says what it does.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "pleat/op_cases/op_case.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/headers.h"
#include "pleat/tests/nn/module_cases.h"
#include "pleat/tests/op_cases/export.h"

using namespace pleat;
using namespace pleat_test;
namespace fs = std::filesystem;

namespace {

using Kind = Declaration::Kind;

constexpr const char* head =
    R"(# Modules and functions

Where each name stands: the header's comments say what it computes, with shapes, options, errors and
sources of formulas. Below functions and modules: [data sets](#data-sets-namespace-data),
[networks](#networks-namespace-models), [training runs](#training-runs-namespace-train),
[files](#files-namespace-io) and [export](#export-namespace-onnx). A test writes this page from the
headers and fails when it is old, or when a name has no comment that says what it does:

```sh
PLEAT_WRITE_MODULES=docs/modules.md build/release/tests/pleat_tests "docs/modules*"
```
)";

constexpr const char* functions_head = R"(
## Functions

What `tests/op_cases/` runs of each function, on the CPU and, compared with it, on a GPU or the double
of CUDA ([cuda.md](cuda.md)):

- floating: `float64`, `float32`, `float16`, `bfloat16`; integers: `uint8`, `int32`, `int64`. Other
  types are refused with `DTypeError`; functions of indices and masks take these types only.
- derivatives: "any" were differentiated twice, against differences, and can be further.
- ONNX ([onnx.md](onnx.md)): the rows that can be exported as a graph that reads its inputs: "all",
  "none" or a part.

| header | functions | types | derivatives | ONNX |
|---|---|---|---|---|
)";

/// What the rows of a function say together.
struct Coverage {
  test::Types types{.floating = false};
  int order = 0, rows = 0, exported = 0;

  std::string columns() const {
    std::string text;
    const auto add = [&](bool holds, const char* kind) {
      if (holds) text += (text.empty() ? "" : ", ") + std::string(kind);
    };
    add(types.floating, "floating");
    add(types.integers, "integers");
    add(types.boolean, "bool");
    text += order == 0 ? " | |" : order == 1 ? " | first |" : " | any |";
    return text + (exported == 0 ? " none |" : exported == rows ? " all |" : " a part |");
  }
};

std::map<std::string, Coverage> coverage_by_function() {
  std::map<std::string, Coverage> functions;
  for (const test::OpFamily& family : test::op_families())
    for (const test::OpCase& c : family.cases()) {
      Coverage& f = functions[c.name];
      f.types.floating |= c.types.floating;
      f.types.integers |= c.types.integers;
      f.types.boolean |= c.types.boolean;
      f.order = std::max(f.order, c.order);
      ++f.rows;
      if (test::why_not_exported(c).empty()) ++f.exported;
      if (c.in_place.call) functions[c.in_place.name] = f;
    }
  return functions;
}

/// "max_pool" of "max_pool2d", "scatter" of "scatter_", else the name.
std::string stem(const std::string& name) {
  static const std::regex suffix("([123]d)?_?$");
  return std::regex_replace(name, suffix, "", std::regex_constants::format_first_only);
}

/// The names of which a comment says what they compute.
class Told {
 public:
  Told() {
    for (const char* folder : {"autograd", "nn", "ops", "data", "models", "train", "io", "onnx", "inference"})
      for (const fs::path& header : public_headers(folder)) {
        const Declaration* speaker = nullptr;
        const std::vector<Declaration> all = declarations(header);
        for (const Declaration& d : all) {
          if (d.own_comment) speaker = &d;
          // One below a comment has it for its own where it is an overload, has the same name but for its
          // dimensions, or stands below its own options.
          const bool shares =
              speaker != nullptr && (speaker->kind == Kind::type || stem(d.name) == stem(speaker->name) ||
                                     d.comment.find(" (smallest)") != std::string::npos ||
                                     d.comment.find('(' + d.name + ')') != std::string::npos);
          if (shares && speaks(d)) names_.insert(d.name);
        }
      }
  }

  /// Whether a comment tells of a declaration, or of what it stands for.
  bool of(const Declaration& d) const {
    static const std::regex function("FunctionLayer<[^,]*, ([a-z_0-9]+)[,>].*");
    std::smatch match;
    if (d.own_comment && speaks(d)) return true;
    std::vector<std::string> names{d.name};
    if (d.kind == Kind::alias)  // of an optimiser its rule says it
      names.push_back(d.name + "Rule");
    names.insert(names.end(), {stem(d.name), d.forwards_to});
    if (std::regex_match(d.base, match, function)) names.push_back(stem(match[1]));
    const std::string base = d.base.substr(0, d.base.find('<'));
    if (base != "Module" && base != "Layer" && base != "FunctionLayer") names.push_back(base);
    for (const std::string& name : names)
      if (names_.count(name) > 0) return true;
    return false;
  }

 private:
  /// Whether a comment is there and says what the declaration computes.
  static bool speaks(const Declaration& d) {
    const bool taken_over = d.kind == Kind::function && !d.base.empty();  // ops/ says it
    return !d.comment.empty() && !taken_over && d.comment.rfind("In place", 0) != 0;
  }
  std::set<std::string> names_;
};

/// A row for each header, of the names of a chapter that it declares.
struct Page {
  std::string text = head;
  std::vector<std::string> without;  ///< names without a comment
  std::size_t names = 0;

  void chapter(const std::string& title) { text += "\n## " + title + "\n\n| header | |\n|---|---|\n"; }

  /// `columns`: what else the row of a name says. Names of which that is the same share a row.
  template <class Columns>
  void add(const fs::path& header, const std::vector<Declaration>& list, const Columns& columns) {
    std::vector<std::pair<std::string, std::string>> rows;  // names, and the columns
    std::set<std::string> seen;
    const std::string path = fs::relative(header, source_root()).generic_string();
    for (const Declaration& d : list) {
      if (!seen.insert(d.name).second) continue;
      ++names;
      if (!told_.of(d)) without.push_back(path + ": " + d.name);
      const std::string end = columns(d.name);
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.second == end; });
      if (row == rows.end()) row = rows.insert(rows.end(), {"", end});
      row->first += (row->first.empty() ? "`" : ", `") + d.name + '`';
    }
    for (const auto& [row, end] : rows)
      text += "| [" + path + "](../" + path + ") | " + row + " |" + end + "\n";
  }
  void add(const fs::path& header, const std::vector<Declaration>& list) {
    add(header, list, [](const std::string&) { return std::string(); });
  }

 private:
  Told told_;
};

/// Names of all classes that derive from Module, by whatever way, and of their aliases.
std::set<std::string> module_names(const std::vector<fs::path>& headers) {
  std::set<std::string> names{"Module", "FunctionLayer", "WeightAndBias"};
  for (std::size_t before = 0; before != names.size();) {
    before = names.size();
    for (const fs::path& header : headers)
      for (const Declaration& d : declarations(header))
        if (d.kind != Kind::function && names.count(d.base.substr(0, d.base.find_first_of("<, "))) > 0)
          names.insert(d.name);
  }
  return names;
}

// Modules of which users take others: Conv2d, LSTM ...
bool is_base(const std::string& name) {
  static const std::set<std::string> bases{"Layer",     "FunctionLayer", "WeightAndBias",
                                           "Conv",      "ConvTranspose", "RunningNorm",
                                           "BatchNorm", "InstanceNorm",  "ChannelDropout"};
  return name.ends_with("Module") || bases.count(name) > 0;
}

Page page() {
  Page page;
  const auto keep = [](const fs::path& header, const auto& wanted) {
    std::vector<Declaration> list;
    for (const Declaration& d : declarations(header))
      if (wanted(d)) list.push_back(d);
    return list;
  };
  const auto is_function = [](const Declaration& d) { return d.kind == Kind::function; };
  const std::vector<fs::path> of_nn = public_headers("nn");
  const std::set<std::string> modules = module_names(of_nn);

  page.text += functions_head;
  std::map<std::string, Coverage> functions = coverage_by_function();
  std::vector<fs::path> of_functions = pleat_test::function_headers();
  of_functions.push_back(source_root() / "nn/loss.h");
  for (const fs::path& header : of_functions)
    page.add(header, keep(header, is_function),
             [&](const std::string& name) { return ' ' + functions[name].columns(); });
  page.chapter("Modules");
  for (const fs::path& header : of_nn)
    page.add(header, keep(header, [&](const Declaration& d) {
               return d.kind != Kind::function && modules.count(d.name) > 0 && !is_base(d.name);
             }));
  page.chapter("Initialisation and tools of modules");
  for (const fs::path& header : of_nn)
    if (header.parent_path().filename() == "nn" && header.filename() != "loss.h")
      page.add(header, keep(header, is_function));
  page.chapter("Optimisers and learning rates");
  for (const fs::path& header : public_headers("nn/optim"))
    page.add(header, keep(header, [](const Declaration& d) {
               return d.kind == Kind::function ||
                      (d.kind == Kind::alias && d.base.starts_with("RuleOptimizer<")) ||
                      (d.kind == Kind::type && (d.name == "Muon" || d.name == "MultiOptimizer" ||
                                                d.name.ends_with("LR") || d.name.ends_with("Momentum")));
             }));
  // Functions, and classes that say what they are: options stand in the header.
  const auto is_told = [](const Declaration& d) {
    return d.kind == Kind::function ||
           (d.kind == Kind::type && !d.comment.empty() && !d.name.ends_with("Options"));
  };
  const std::pair<const char*, const char*> folders[] = {
      {"data", "Data sets, namespace `data`"},       {"models", "Networks, namespace `models`"},
      {"train", "Training runs, namespace `train`"}, {"io", "Files, namespace `io`"},
      {"onnx", "Export, namespace `onnx`"},          {"inference", "Inference"}};
  for (const auto& [folder, title] : folders) {
    page.chapter(title);
    for (const fs::path& header : public_headers(folder)) page.add(header, keep(header, is_told));
  }
  return page;
}

}  // namespace

TEST_CASE("docs/modules.md is what the headers declare, each name with a comment", "[op_cases][cpu]") {
  const Page now = page();
  if (const char* path = std::getenv("PLEAT_WRITE_MODULES")) std::ofstream(path) << now.text;
  std::string list;
  for (const std::string& name : now.without) list += "\n  " + name;
  INFO("without a comment that says what it computes:" << list);
  CHECK(now.without.empty());
  // Were the headers written in another way, nothing would be found and nothing missing.
  CHECK(now.names > 350);
  INFO("PLEAT_WRITE_MODULES=docs/modules.md writes it anew");
  CHECK((text_of(source_root() / "docs/modules.md") == now.text));
}

TEST_CASE("every layer has a row in module_cases.cpp, every other module a test", "[op_cases][nn]") {
  std::set<std::string> rows;
  for (const test::ModuleCase& c : test::module_cases())
    rows.insert(c.name.substr(0, c.name.find_first_of(", ")));
  const std::string tests = text_of(source_root() / "tests/nn/loss_modules_test.cpp") +
                            text_of(source_root() / "tests/nn/distance_test.cpp") +
                            text_of(source_root() / "tests/nn/layers_test.cpp") +
                            text_of(source_root() / "tests/nn/containers_test.cpp");
  // Layers take one tensor.
  const std::regex other("\\b(Lambda|ModuleList|MaxUnpool[123]d|CosineSimilarity|PairwiseDistance|\\w+Loss)");
  int layers = 0;
  for (const std::string& name : module_names(public_headers("nn"))) {
    if (is_base(name)) continue;
    CAPTURE(name);
    if (std::regex_match(name, other))
      CHECK(std::regex_search(tests, std::regex("\\b" + name + "\\b")));
    else
      CHECK(rows.count(name) == 1);
    ++layers;
  }
  CHECK(layers > 100);
}
