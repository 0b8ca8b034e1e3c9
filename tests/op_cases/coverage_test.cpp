// Every public function has a row, and docs/op_coverage.md shows the rows.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "pleat/op_cases/op_case.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/headers.h"

using namespace pleat;
using namespace pleat::test;
using pleat_test::public_headers;
using pleat_test::text_of;
namespace fs = std::filesystem;

namespace {

const fs::path root = pleat_test::source_root();

/// The functions that a header declares, or takes over by `using ops::name`.
std::set<std::string> declared_in(const fs::path& header) {
  std::set<std::string> names;
  for (const pleat_test::Declaration& d : pleat_test::declarations(header))
    if (d.kind == pleat_test::Declaration::Kind::function) names.insert(d.name);
  return names;
}

/// The functions of namespace ops that a text calls.
void add_raw_calls(const std::string& text, std::set<std::string>& names) {
  static const std::regex call("ops::([a-z_0-9]+)");
  for (auto i = std::sregex_iterator(text.begin(), text.end(), call); i != std::sregex_iterator(); ++i)
    names.insert((*i)[1]);
}

std::set<std::string> names_in_table() {
  std::set<std::string> names;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      names.insert(c.name);
      if (c.in_place.call) names.insert(c.in_place.name);
    }
  return names;
}

/// What the rows of a function say together.
struct Coverage {
  Types types{.floating = false};
  int order = 0;
  std::set<std::string> in_place;
  bool shown = false;

  std::string row_end() const {
    std::string text;
    const auto add = [&](bool holds, const char* kind) {
      if (holds) text += (text.empty() ? "" : ", ") + std::string(kind);
    };
    add(types.floating, "floating");
    add(types.integers, "integers");
    add(types.boolean, "bool");
    return text + (order == 0 ? " | |" : order == 1 ? " | first |" : " | any |");
  }
};

constexpr const char* head =
    R"(# Coverage of the functions

What the tests of `tests/op_cases/` run, by function: on which types, on the CPU and on CUDA, and to
which derivative. A test writes this page from the table there and fails when it is old:

```sh
PLEAT_WRITE_OP_COVERAGE=docs/op_coverage.md build/release/tests/pleat_tests "docs/op_coverage*"
```

- floating: `float64`, `float32`, `float16`, `bfloat16`; integers: `uint8`, `int32`, `int64`. Other
  types are refused with `DTypeError`; functions of indices and masks take these types only.
- derivatives: "any" were differentiated twice, against differences, and can be further.
- CUDA: compared with the CPU, on a GPU or on the double of CUDA ([cuda.md](cuda.md)).
- Behind a function, in brackets, the functions that do the same in place.

| family | functions | types | derivatives |
|---|---|---|---|
)";

std::string page() {
  std::string text = head;
  std::map<std::string, Coverage> functions;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      Coverage& f = functions[c.name];
      f.types.floating |= c.types.floating;
      f.types.integers |= c.types.integers;
      f.types.boolean |= c.types.boolean;
      f.order = std::max(f.order, c.order);
      if (c.in_place.call) f.in_place.insert(c.in_place.name);
    }
  for (const OpFamily& family : op_families()) {
    std::vector<std::pair<std::string, std::string>> rows;  // names, and what they have in common
    for (const OpCase& c : family.cases()) {
      Coverage& f = functions[c.name];
      if (std::exchange(f.shown, true)) continue;
      const std::string end = f.row_end();
      auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.second == end; });
      if (row == rows.end()) row = rows.insert(rows.end(), {"", end});
      row->first += (row->first.empty() ? "`" : ", `") + c.name + '`';
      for (const std::string& name : f.in_place) row->first += " (`" + name + "`)";
    }
    for (const auto& [names, end] : rows)
      text += std::string("| ") + family.name + " | " + names + " | " + end + '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("every public function has a row in the table of op cases", "[op_cases][cpu]") {
  const std::set<std::string> rows = names_in_table();
  std::set<std::string> declared, missing;
  std::vector<fs::path> headers = pleat_test::function_headers();
  headers.push_back(root / "nn/loss.h");
  for (const fs::path& header : headers)
    for (const std::string& name : declared_in(header)) {
      declared.insert(name);
      if (rows.count(name) == 0) missing.insert(fs::relative(header, root).string() + ": " + name);
    }
  for (const std::string& name : rows) {
    CAPTURE(name);
    CHECK(declared.count(name) == 1);
  }

  // A raw function: a differentiable one or an optimiser calls it, or a test of devices.
  std::set<std::string> called;
  for (const char* folder : {"autograd", "ops", "nn", "tests/device", "op_cases", "tests/op_cases"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file()) add_raw_calls(text_of(entry.path()), called);
  static const std::regex describes("(problem|implementations?|channel_layout)\\.h$");
  for (const fs::path& header : public_headers("ops")) {
    // These describe and choose; what they choose is computed by the others.
    if (std::regex_search(header.string(), describes)) continue;
    if (text_of(header).find("namespace ops") == std::string::npos &&
        text_of(header).find("namespace pleat::ops") == std::string::npos)
      continue;
    for (const std::string& name : declared_in(header)) {
      declared.insert(name);
      if (name.find("_implementations") == std::string::npos && name != "describe" && called.count(name) == 0)
        missing.insert(fs::relative(header, root).string() + ": ops::" + name);
    }
  }
  std::string list;
  for (const std::string& name : missing) list += "\n  " + name;
  INFO("without a row in op_cases/:" << list);
  CHECK(missing.empty());
  // Were the headers written in another way, nothing would be found and nothing missing.
  CHECK(declared.size() > 200);
}

TEST_CASE("rows have titles of their own, and a reference or the test of their values", "[op_cases][cpu]") {
  std::set<std::string> titles;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      CAPTURE(c.title());
      CHECK(titles.insert(c.title()).second);  // Catch runs one section of a name
      CHECK((c.reference || fs::exists(root / "tests" / c.values_in)));
      CHECK((c.reference || !c.values_in.empty()));
    }
}

TEST_CASE("docs/op_coverage.md is what the table of op cases says", "[op_cases][cpu]") {
  const std::string now = page();
  if (const char* path = std::getenv("PLEAT_WRITE_OP_COVERAGE")) {
    std::ofstream(path) << now;
    return;
  }
  INFO("PLEAT_WRITE_OP_COVERAGE=docs/op_coverage.md writes it anew");
  CHECK((text_of(root / "docs/op_coverage.md") == now));
}
