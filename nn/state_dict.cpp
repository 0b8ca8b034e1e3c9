#include "pleat/nn/state_dict.h"

#include <utility>

#include "pleat/core/base/format.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/elementwise/compare.h"

namespace pleat::nn {

namespace {

/// Floating, integer or bool. A conversion between kinds would change what the numbers are.
bool same_kind(DType a, DType b) {
  return is_floating(a) == is_floating(b) && (a == boolean) == (b == boolean);
}

/// Whether the type that they are to be stored in holds the integers, and no finite number becomes infinite.
bool fits(const Tensor& given, DType type) {
  if (given.dtype() == type) return true;
  const Tensor stored = ops::cast(given, type);
  return is_floating(type) ? ops::array_equal(ops::isfinite(stored), ops::isfinite(given))
                           : ops::array_equal(stored, given);
}

}  // namespace

LoadReport copy_state(const std::string& what, const StateDict& into, const StateDict& from,
                      LoadOptions options) {
  LoadReport report;
  std::string problems;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, own] : into) {
    const auto found = from.find(name);
    if (found == from.end()) {
      report.missing.push_back(name);
      if (options.strict) problems += fmt::format("\n  missing     {}  {}", name, own.describe());
    } else if (!found->second.defined()) {
      problems += fmt::format("\n  undefined   {}", name);
    } else if (found->second.shape() != own.shape()) {
      problems +=
          fmt::format("\n  shape       {}  needs {}, got {}", name, own.shape(), found->second.shape());
    } else if (!same_kind(found->second.dtype(), own.dtype())) {
      problems +=
          fmt::format("\n  type        {}  needs {}, got {}", name, own.dtype(), found->second.dtype());
    } else if (!fits(found->second, own.dtype())) {
      problems += fmt::format("\n  value       {}  is too large for {}", name, own.dtype());
    } else {
      copies.emplace_back(own, found->second);
    }
  }
  for (const auto& [name, tensor] : from) {
    if (into.contains(name)) continue;
    report.unexpected.push_back(name);
    if (options.strict) problems += fmt::format("\n  unexpected  {}  {}", name, tensor.describe());
  }
  if (options.strict && !into.empty() && !from.empty() && report.missing.size() == into.size())
    problems += fmt::format("\n  None of the {} names is among the {} of the state: it is another network's",
                            into.size(), from.size());
  check<ValueError>(problems.empty(), "{}: the state does not fit{}", what, problems);
  for (auto& [own, given] : copies) given = ops::to_device(given, own.device());
  for (const auto& [own, given] : copies) ops::copy_into(own, given);
  return report;
}

StateDict clone(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, tensor] : state) copy.emplace(name, ops::copy(tensor));
  return copy;
}

}  // namespace pleat::nn
