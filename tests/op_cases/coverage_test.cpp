// Every public function has a row in the table of op cases.

#include <filesystem>
#include <regex>
#include <set>

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
