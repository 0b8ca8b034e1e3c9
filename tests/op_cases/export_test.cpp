#include "pleat/tests/op_cases/export.h"

#include <algorithm>
#include <set>

#include "pleat/onnx/export.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/onnx/export_check.h"
#include "pleat/tests/onnx/onnx_file.h"
#include "pleat/tests/temporary_directory.h"

// The rows of the table of op cases as ONNX files.

namespace pleat::test {
namespace {

Tensors inputs_of(const OpCase& c) { return typed(c.inputs, c.types.floating ? float32 : int64); }

}  // namespace

std::string why_not_exported(const OpCase& c) {
  static const pleat_test::TemporaryDirectory folder;
  try {
    onnx::export_onnx(folder / "row.onnx", inputs_of(c), [&](const Tensors& x) { return c.run(x); },
                      {.batch_dims = {}});
  } catch (const Error& error) {
    return error.what();
  }
  // What a row makes of numbers that it reads would be a constant.
  const pleat_test::OnnxFile file = pleat_test::read_onnx(folder / "row.onnx");
  std::set<std::string> read;
  for (const pleat_test::OnnxNode& node : file.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  const bool reads_input = std::any_of(file.inputs.begin(), file.inputs.end(),
                                       [&](const auto& input) { return read.count(input.name) > 0; });
  return reads_input ? "" : "its graph reads no input";
}

TEST_CASE("a file of ONNX computes the rows of the table", "[op_cases][onnx][cpu]") {
  pleat_test::ExportCheck all;
  std::string refused;
  int rows = 0;
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      if (const std::string why = why_not_exported(c); !why.empty()) {
        refused += c.title() + ": " + why + '\n';
        continue;
      }
      const Tensors x = inputs_of(c);
      const Tensors y = c.run(x);
      // A bfloat16 cannot be handed to Python.
      if (std::any_of(y.begin(), y.end(), [](const Tensor& each) { return each.dtype() == bfloat16; }))
        continue;
      std::string file_name = c.title();
      // Of what titles have Windows takes no ':' and '>' in names, nor '.' at their end, nobody '/'.
      std::replace_if(
          file_name.begin(), file_name.end(),
          [](char letter) { return letter == '/' || letter == ':' || letter == '>' || letter == '.'; }, '_');
      const auto function = [&](const Tensors& in) { return c.run(in); };
      all.add_file(std::to_string(++rows) + ' ' + file_name,
                   [&](const auto& file) { onnx::export_onnx(file, x, function, {.batch_dims = {}}); },
                   function, x, {});
    }
  INFO(refused);
  CHECK(all.run() == "");
  CHECK(rows > 300);
}

}  // namespace pleat::test
