// docs/modules.md lists what the headers declare, and each name has a comment that says what it does.

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "pleat/tests/catch.h"
#include "pleat/tests/headers.h"

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

Types, devices and derivatives of each function: [op_coverage.md](op_coverage.md).
)";

/// "max_pool" of "max_pool2d", "scatter" of "scatter_", else the name.
std::string stem(const std::string& name) {
  static const std::regex suffix("([123]d)?_?$");
  return std::regex_replace(name, suffix, "", std::regex_constants::format_first_only);
}

/// The names of which a comment says what they compute.
class Told {
 public:
  Told() {
    for (const char* folder : {"autograd", "nn", "ops", "data", "models", "train", "io", "onnx"})
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

  void add(const fs::path& header, const std::vector<Declaration>& list) {
    std::string row;
    std::set<std::string> seen;
    const std::string path = fs::relative(header, source_root()).string();
    for (const Declaration& d : list) {
      if (!seen.insert(d.name).second) continue;
      ++names;
      if (!told_.of(d)) without.push_back(path + ": " + d.name);
      row += (row.empty() ? "`" : ", `") + d.name + '`';
    }
    if (!row.empty()) text += "| [" + path + "](../" + path + ") | " + row + " |\n";
  }

 private:
  Told told_;
};

/// Names of all classes that derive from Module, by whatever way, and of their aliases.
std::set<std::string> module_names(const std::vector<fs::path>& headers) {
  std::set<std::string> names{"Module", "FunctionLayer"};
  for (std::size_t before = 0; before != names.size();) {
    before = names.size();
    for (const fs::path& header : headers)
      for (const Declaration& d : declarations(header))
        if (d.kind != Kind::function && names.count(d.base.substr(0, d.base.find_first_of("<, "))) > 0)
          names.insert(d.name);
  }
  return names;
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
  // Of which users take others: Conv2d, LSTM ...
  const std::set<std::string> templates{"Module",          "Layer",
                                        "FunctionLayer",   "Conv",
                                        "ConvTranspose",   "BatchNorm",
                                        "InstanceNorm",    "ChannelDropout",
                                        "RecurrentModule", "RecurrentCellModule"};

  page.chapter("Functions");
  for (const fs::path& header : pleat_test::function_headers()) page.add(header, keep(header, is_function));
  page.chapter("Modules");
  for (const fs::path& header : of_nn)
    page.add(header, keep(header, [&](const Declaration& d) {
               return d.kind != Kind::function && modules.count(d.name) > 0 && templates.count(d.name) == 0;
             }));
  page.chapter("Losses, initialisation and tools of modules");
  for (const fs::path& header : of_nn)
    if (header.parent_path().filename() == "nn") page.add(header, keep(header, is_function));
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
  const std::pair<const char*, const char*> folders[] = {{"data", "Data sets, namespace `data`"},
                                                         {"models", "Networks, namespace `models`"},
                                                         {"train", "Training runs, namespace `train`"},
                                                         {"io", "Files, namespace `io`"},
                                                         {"onnx", "Export, namespace `onnx`"}};
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
