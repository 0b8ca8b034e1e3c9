#include "pleat/inference/inference.h"

#include <set>

#include "pleat/ops/elementwise/compare.h"
#include "pleat/tests/op_cases/all_cases.h"
#include "pleat/tests/op_cases/export.h"

// The rows of the table as plans of an Inference.

namespace pleat::test {
namespace {

struct Holder : nn::Module {};

/// Whether elements are the same but for what sums in another order round.
bool agree(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const double tolerance = is_floating(a.dtype()) ? 1e-5 : 0;
  return allclose(a.to(float64), b.to(float64), {.rtol = tolerance, .atol = tolerance, .equal_nan = true});
}

}  // namespace

TEST_CASE("plans of an Inference give what the rows of the table give", "[op_cases][inference][cpu]") {
  int followed = 0;
  std::string wrong;
  std::set<std::string> not_called_again;  // of the rows that the export can write
  for (const OpFamily& family : op_families())
    for (const OpCase& c : family.cases()) {
      const Tensors x = typed(c.inputs, c.types.floating ? float32 : int64);
      const Tensors expected = c.run(x);
      Holder none;
      const Inference engine(none, x, [&](const Tensors& in) { return c.run(in); }, {.batch_dims = {}});
      const Tensors y = engine(x);
      bool same = y.size() == expected.size();
      for (std::size_t i = 0; same && i < y.size(); ++i) same = agree(y[i], expected[i]);
      if (!same) wrong += c.title() + '\n';
      const std::string text = engine.summary(), before = "cannot follow it: ";
      const std::size_t reason = text.find(before);
      followed += reason == std::string::npos;
      if (reason == std::string::npos || !why_not_exported(c).empty()) continue;
      const std::size_t function = reason + before.size();
      not_called_again.insert(
          text.substr(function, text.find(" cannot be called again", function) - function));
    }
  CHECK(wrong == "");
  CHECK(followed > 430);
  CHECK(not_called_again == std::set<std::string>{});
}

}  // namespace pleat::test
