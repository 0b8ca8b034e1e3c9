// docs/modules.md is what the comments of the headers and the tables of op cases and modules say.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "pleat/autograd/grad_mode.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/headers.h"
#include "pleat/tests/nn/module_cases.h"
#include "pleat/tests/op_cases/op_case.h"

using namespace pleat;
using namespace pleat::test;
using namespace pleat_test;
namespace fs = std::filesystem;

namespace {

using Kind = Declaration::Kind;

constexpr const char* head =
    R"(# Modules and functions

A line for each: what it computes, and an example of shapes, inputs → results. The header has the
rest: options, errors, sources of formulas. Below them: [data sets](#data-sets-namespace-data),
[networks](#networks-namespace-models), [training runs](#training-runs-namespace-train),
[files](#files-namespace-io) and [export](#export-namespace-onnx). A test writes this page from the
comments of the headers and the tables of `tests/op_cases/` and `tests/nn/module_cases.cpp`, and
fails when it is old:

```sh
PLEAT_WRITE_MODULES=docs/modules.md build/release/tests/pleat_tests "docs/modules*"
```

Types, devices and derivatives of each function: [op_coverage.md](op_coverage.md).
)";

/// Whether a sentence ends at the full stop in front of this place.
bool sentence_ends(const std::string& text, std::size_t stop) {
  if (stop + 1 == text.size()) return true;
  if (text[stop + 1] != ' ') return false;
  const bool after_abbreviation = stop >= 5 && text.compare(stop - 5, 5, "et al") == 0;
  return !after_abbreviation && stop + 2 < text.size() &&
         (std::isupper(static_cast<unsigned char>(text[stop + 2])) != 0 || text[stop + 2] == '`');
}

/// The first sentence of a comment, with the formula that follows at once.
std::string first_sentence(const std::string& comment) {
  std::istringstream lines(comment);
  std::string sentence, formula;
  bool ended = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  ", 0) == 0) {
      formula += (formula.empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
      continue;
    }
    if (!formula.empty() || (line.empty() && ended)) break;
    if (ended || line.empty()) continue;
    sentence += (sentence.empty() ? "" : " ") + line;
    for (std::size_t i = 0; i < sentence.size() && !ended; ++i)
      if (sentence[i] == '.' && sentence_ends(sentence, i)) {
        ended = true;
        sentence.resize(i + 1);
      }
  }
  const bool is_code = formula.find(';') + 1 == formula.size() || formula.find("{{") != std::string::npos;
  if (formula.find('=') != std::string::npos && !is_code)
    sentence += " `" + formula + '`';
  else if (sentence.ends_with(':'))
    sentence.back() = '.';
  return sentence;
}

std::string for_table(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (c == '|')
      result += "\\|";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  return result;
}

std::string shape_text(const Tensor& x) { return to_string(x.shape()); }

template <class List>
std::string shapes_text(const List& tensors) {
  std::string text;
  for (const Tensor& x : tensors)
    if (x.defined()) text += (text.empty() ? "" : ", ") + shape_text(x);
  return text;
}

/// By function or module: "[3, 4] → [3]".
std::map<std::string, std::string> examples() {
  const NoGrad off_the_tape;
  std::map<std::string, std::string> all;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      if (all.count(c.name) > 0) continue;
      const Tensors inputs = typed(c.inputs, float64);
      all[c.name] = shapes_text(inputs) + " → " + shapes_text(c.run(inputs));
    }
  for (const ModuleCase& c : module_cases()) {
    const std::string name = c.name.substr(0, c.name.find(','));
    if (all.count(name) > 0) continue;
    const auto module = c.make();
    module->to(float64);
    const Tensor x = c.make_input();
    all[name] = shape_text(x) + " → " + shape_text((*module)(x));
  }
  return all;
}

/// "max_pool" of "max_pool2d", "scatter" of "scatter_", else the name.
std::string stem(const std::string& name) {
  static const std::regex suffix("([123]d)?_?$");
  return std::regex_replace(name, suffix, "", std::regex_constants::format_first_only);
}

/// What the comments say, by name.
class Lines {
 public:
  Lines() {
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
          if (shares && speaks(d)) comments_.emplace(d.name, d.comment);
        }
      }
  }

  /// The line of a declaration; "" when there is none.
  std::string of(const Declaration& d) const {
    static const std::regex function(".*, ([a-z_0-9]+)>");  // Pool<MaxPoolOptions, max_pool2d>
    std::smatch match;
    if (d.own_comment && speaks(d)) return first_sentence(d.comment);
    std::vector<std::string> names{d.name};
    if (d.kind == Kind::alias) names.push_back(d.base.substr(0, d.base.find('<')));
    names.insert(names.end(), {stem(d.name), d.forwards_to});
    if (std::regex_match(d.base, match, function)) names.push_back(stem(match[1]));
    if (d.base != "Module") names.push_back(d.base.substr(0, d.base.find('<')));
    for (const std::string& name : names) {
      const auto entry = comments_.find(name);
      if (entry != comments_.end()) return first_sentence(entry->second);
    }
    return "";
  }

 private:
  /// Whether a comment is there and says what the declaration computes.
  static bool speaks(const Declaration& d) {
    const bool taken_over = d.kind == Kind::function && !d.base.empty();  // ops/ says it
    return !d.comment.empty() && !taken_over && d.comment.rfind("In place", 0) != 0;
  }
  std::map<std::string, std::string> comments_;
};

/// A section for a header: rows of functions, or of modules.
struct Page {
  std::string text = head;
  std::vector<std::string> without;  ///< names without a line
  std::size_t names = 0;

  void add(const fs::path& header, const std::vector<Declaration>& list, bool with_examples = true) {
    struct Row {
      std::vector<std::string> names;
      std::string line, example;
    };
    std::vector<Row> rows;
    std::set<std::string> seen;
    const std::string path = fs::relative(header, source_root()).string();
    for (const Declaration& d : list) {
      if (!seen.insert(d.name).second) continue;
      ++names;
      const std::string line = lines_.of(d);
      if (line.empty()) without.push_back(path + ": " + d.name);
      const auto example = examples_.find(d.name);
      const std::string shapes = example == examples_.end() || !with_examples ? "" : example->second;
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.line == line; });
      if (row == rows.end()) row = rows.insert(rows.end(), Row{{}, line, ""});
      row->names.push_back('`' + d.name + '`');
      if (row->example.empty()) row->example = shapes;
    }
    if (rows.empty()) return;
    text += "\n### [" + path + "](../" + path + ")\n\n";
    text += with_examples ? "| | computes | example |\n|---|---|---|\n" : "| | |\n|---|---|\n";
    for (const Row& row : rows) {
      std::string all;
      for (const std::string& name : row.names) all += (all.empty() ? "" : ", ") + name;
      text += "| " + all + " | " + for_table(row.line) + (with_examples ? " | " + row.example : "") + " |\n";
    }
  }

 private:
  Lines lines_;
  std::map<std::string, std::string> examples_ = examples();
};

/// Names of all classes that derive from Module, by whatever way, and of their aliases.
std::set<std::string> module_names(const std::vector<fs::path>& headers) {
  std::set<std::string> names{"Module"};
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
  const std::set<std::string> templates{"Module",          "Conv",
                                        "ConvTranspose",   "Pool",
                                        "LossModule",      "BatchNorm",
                                        "InstanceNorm",    "ChannelDropout",
                                        "RecurrentModule", "RecurrentCellModule"};

  page.text += "\n## Functions\n";
  for (const fs::path& header : pleat_test::function_headers())
    page.add(header, keep(header, is_function));
  page.text += "\n## Modules\n";
  for (const fs::path& header : of_nn)
    page.add(header, keep(header, [&](const Declaration& d) {
               return d.kind != Kind::function && modules.count(d.name) > 0 && templates.count(d.name) == 0;
             }));
  page.text += "\n## Losses, initialisation and tools of modules\n";
  for (const fs::path& header : of_nn)
    if (header.parent_path().filename() == "nn") page.add(header, keep(header, is_function));
  page.text += "\n## Optimisers and learning rates\n";
  for (const fs::path& header : public_headers("nn/optim"))
    page.add(header, keep(header, [](const Declaration& d) {
               return d.kind == Kind::function ||
                      (d.kind == Kind::type &&
                       ((d.base.find("OptimizerWith") != std::string::npos && d.name != "OptimizerWith") ||
                        d.base.find("Adam") == 0 || d.name == "MultiOptimizer" || d.name.ends_with("LR") ||
                        d.name.ends_with("Momentum")));
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
    page.text += std::string("\n## ") + title + '\n';
    for (const fs::path& header : public_headers(folder)) page.add(header, keep(header, is_told), false);
  }
  return page;
}

}  // namespace

TEST_CASE("docs/modules.md is what the headers say, with a line for each function and module",
          "[op_cases][cpu]") {
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
