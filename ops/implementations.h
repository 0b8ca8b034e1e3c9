#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pleat/core/base/device.h"

/// How an operation with several implementations chooses one. Each of them can compute a pass of a problem
/// (sizes, types, device) or says why it cannot; what the call names is taken, else what the policy of the
/// scope names, else the first that can. Nothing falls back silently: a named one that cannot is an error.

namespace pleat::ops {

/// One way to compute an operation. It checks no arguments and does not depend on another one.
template <class ProblemType, class PassType>
class Implementation {
 public:
  using Problem = ProblemType;  ///< has a `device`
  using Pass = PassType;

  virtual ~Implementation() = default;
  virtual std::string_view name() const = 0;
  /// Whether it can compute anything on a device like this one.
  virtual bool runs_on(Device device) const = 0;
  /// Empty when it can compute this pass of the problem, else why not, as the end of a sentence: "it needs
  /// stride 1".
  virtual std::string unsupported(const Problem& problem, Pass pass) const = 0;
};

/// Why an implementation was not found, for the error of a call.
struct Refusal {
  bool known = false;          ///< whether there is one of that name
  std::string reason = {};     ///< why it cannot compute the problem; empty when it can
  std::string supported = {};  ///< the names of those that can, the preferred first: "direct, unfold"
};

/// The implementations of one operation, the preferred first. One name may stand for several, each for a
/// device.
template <class I>
class Implementations {
 public:
  using Problem = typename I::Problem;
  using Pass = typename I::Pass;

  explicit Implementations(std::vector<const I*> all) : all_(std::move(all)) {}
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  /// Of all that run on a device.
  std::vector<std::string> names(Device device) const {
    return names_of([&](const I& one) { return one.runs_on(device); });
  }
  /// The first that can compute a pass, of those with this name unless that is empty; null when none can.
  const I* find(const Problem& problem, Pass pass, std::string_view name) const {
    const auto found = std::find_if(all_.begin(), all_.end(), [&](const I* one) {
      return (name.empty() || one->name() == name) && one->unsupported(problem, pass).empty();
    });
    return found != all_.end() ? *found : nullptr;
  }
  /// Why `find` gives nothing: the reason of the one for the problem's device, where there is one.
  Refusal refusal(const Problem& problem, Pass pass, std::string_view name) const {
    Refusal result;
    for (const I* one : all_) {
      if (one->name() != name) continue;
      if (!result.known || one->runs_on(problem.device)) result.reason = one->unsupported(problem, pass);
      result.known = true;
    }
    for (const std::string& able :
         names_of([&](const I& one) { return one.unsupported(problem, pass).empty(); }))
      result.supported += (result.supported.empty() ? "" : ", ") + able;
    return result;
  }

 private:
  template <class Condition>
  std::vector<std::string> names_of(const Condition& holds) const {
    std::vector<std::string> names;
    for (const I* one : all_)
      if (holds(*one) && std::find(names.begin(), names.end(), one->name()) == names.end())
        names.emplace_back(one->name());
    return names;
  }

  std::vector<const I*> all_;
};

/// The first of some names that is not empty, else the last: what the call says of a pass before what it says
/// of all passes, and both before the policy.
template <class... S>
const std::string& first_named(const std::string& name, const S&... others) {
  if constexpr (sizeof...(others) == 0)
    return name;
  else
    return name.empty() ? first_named(others...) : name;
}

}  // namespace pleat::ops
