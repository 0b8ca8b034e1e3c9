#include "pleat/nn/state_dict.h"

#include <algorithm>
#include <set>
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
  return is_floating(type) ? array_equal(isfinite(stored), isfinite(given)) : array_equal(stored, given);
}

/// The dots and what follows them that both names end in: the length of "conv.weight" for
/// "module.conv.weight" and "conv.weight".
std::size_t common_end(const std::string& a, const std::string& b) {
  const auto differ = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  auto same = static_cast<std::size_t>(differ.first - a.rbegin());
  const auto is_part = [&](const std::string& name) {
    return same == name.size() || name[name.size() - same - 1] == '.';
  };
  while (same > 0 && !(is_part(a) && is_part(b))) --same;
  return same;
}

/// The last line for a state that has all names that are missing, with another beginning, and most of the
/// shapes; else "".
std::string renaming(const StateDict& into, const StateDict& from, const LoadReport& report) {
  std::set<std::pair<std::string, std::string>> tried;
  for (const std::string& given : report.unexpected)
    for (const std::string& wanted : report.missing) {
      const std::size_t same = common_end(given, wanted);
      const std::string before = given.substr(0, given.size() - same);
      const std::string after = wanted.substr(0, wanted.size() - same);
      if (same == 0 || !tried.emplace(before, after).second) continue;
      std::size_t names = 0, shapes = 0;
      for (const std::string& name : report.missing) {
        if (!name.starts_with(after)) break;
        const auto found = from.find(before + name.substr(after.size()));
        if (found == from.end() || !found->second.defined()) break;
        ++names;
        if (found->second.shape() == into.at(name).shape()) ++shapes;
      }
      if (names == report.missing.size() && 2 * shapes >= names)
        return fmt::format(
            "\n  The names fit with \"{}\" in place of \"{}\": train::transfer(net, state, {{.rename = "
            "{{{{\"{}\", \"{}\"}}}}}})",
            after, before, before, after);
    }
  return "";
}

/// The first of the lines, and how many more there are.
std::string first_of(const std::vector<std::string>& lines) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i + 1 == most && lines.size() > most)
      return text + fmt::format("\n  ... and {} more", lines.size() - i);
    text += "\n  " + lines[i];
  }
  return text;
}

}  // namespace

LoadReport copy_state(const std::string& what, const StateDict& into, const StateDict& from,
                      LoadOptions options) {
  LoadReport report;
  std::vector<std::string> problems, unexpected;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, own] : into) {
    const auto found = from.find(name);
    if (found == from.end()) {
      report.missing.push_back(name);
      if (options.strict) problems.push_back(fmt::format("missing     {}  {}", name, own));
    } else if (!found->second.defined()) {
      problems.push_back(fmt::format("undefined   {}", name));
    } else if (found->second.shape() != own.shape()) {
      problems.push_back(
          fmt::format("shape       {}  needs {}, got {}", name, own.shape(), found->second.shape()));
    } else if (!same_kind(found->second.dtype(), own.dtype())) {
      problems.push_back(
          fmt::format("type        {}  needs {}, got {}", name, own.dtype(), found->second.dtype()));
    } else if (!fits(found->second, own.dtype())) {
      problems.push_back(fmt::format("value       {}  is too large for {}", name, own.dtype()));
    } else {
      copies.emplace_back(own, found->second);
    }
  }
  for (const auto& [name, tensor] : from) {
    if (into.contains(name)) continue;
    report.unexpected.push_back(name);
    if (options.strict) unexpected.push_back(fmt::format("unexpected  {}  {}", name, tensor));
  }
  if (!problems.empty() || !unexpected.empty()) {
    std::string advice = renaming(into, from, report);
    if (advice.empty() && 2 * copies.size() < into.size() && !from.empty())
      advice =
          fmt::format("\n  {} of {} tensors fit: it is another network's state, or that of other options",
                      copies.size(), into.size());
    fail<ValueError>("{}: the state does not fit{}{}{}", what, first_of(problems), first_of(unexpected),
                     advice);
  }
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
