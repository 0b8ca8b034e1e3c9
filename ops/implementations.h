#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pleat/core/base/device.h"
#include "pleat/core/base/error.h"

/// How an operation with several implementations chooses one. Each of them can compute a pass of a problem
/// (sizes, types, device) or says why it cannot; what the call names is taken, else what the policy of the
/// scope names, else with the policy's `benchmark` the fastest (ops/tune/candidates.h), else the one with the
/// least cost. Nothing falls back silently: a named one that cannot is an error.

namespace pleat::ops {

/// One way to compute an operation. It checks no arguments and does not depend on another one.
template <class ProblemType, class PassType>
class Implementation {
 public:
  using Problem = ProblemType;  ///< has a `device`, and `describe()` for messages
  using Pass = PassType;        ///< has a `name(pass)`

  virtual ~Implementation() = default;
  virtual std::string_view name() const = 0;
  /// Whether it can compute anything on a device like this one.
  virtual bool runs_on(Device device) const = 0;
  /// Empty when it can compute this pass of the problem, else why not, as the end of a sentence: "it needs
  /// stride 1".
  virtual std::string unsupported(const Problem& problem, Pass pass) const = 0;
  /// An estimate of the time of a pass that it supports, in a unit of the operation's. One that gives none
  /// computes only what it is named or timed for, or what no other can compute.
  virtual double cost(const Problem&, Pass) const { return std::numeric_limits<double>::infinity(); }
};

/// The implementations of one operation, the preferred first. One name may stand for several, each for a
/// device.
template <class I>
class Implementations {
 public:
  using Problem = typename I::Problem;
  using Pass = typename I::Pass;

  /// Null stands for one whose library this build is without.
  explicit Implementations(std::vector<const I*> all) : all_(std::move(all)) { std::erase(all_, nullptr); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  /// Of all that run on a device.
  std::vector<std::string> names(Device device) const {
    return names_of([&](const I& one) { return one.runs_on(device); });
  }
  /// The one with this name that can compute a pass, "name:plan" bound to the plan; for an empty name, of
  /// those that can, the one with the least cost, of equal ones the first. Null when there is none.
  std::shared_ptr<const I> find(const Problem& problem, Pass pass, std::string_view name) const {
    const std::string_view base = without_plan(name);
    const I* best = nullptr;
    double least = 0;
    for (const I* one : all_) {
      if (!base.empty() && one->name() != base) continue;
      if (!one->unsupported(problem, pass).empty()) continue;
      const double cost = base.empty() ? one->cost(problem, pass) : 0;
      if (best != nullptr && cost >= least) continue;
      best = one;
      least = cost;
    }
    if constexpr (requires { best->with_plan(std::string()); })
      if (best != nullptr && base != name) return best->with_plan(std::string(name.substr(base.size() + 1)));
    return {std::shared_ptr<void>(), best};  // exists as long as the process: nothing to count
  }
  /// What `find` gives; throws ValueError where that is nothing, saying why and which can. `op` begins the
  /// message.
  std::shared_ptr<const I> get(const char* op, const Problem& problem, Pass pass,
                               std::string_view wanted) const {
    if (auto found = find(problem, pass, wanted)) return found;
    const std::string base(without_plan(wanted)), all_of_it(wanted);
    const std::optional<std::string> reason = why_not(problem, pass, base);
    std::string able;
    for (const std::string& one :
         names_of([&](const I& each) { return each.unsupported(problem, pass).empty(); }))
      able += (able.empty() ? "" : ", ") + one;
    const std::string what = std::string(name(pass)) + " pass of " + problem.describe();
    const std::string begin = std::string(op) + ": ";
    if (!reason)
      throw ValueError(begin + "there is no implementation \"" + all_of_it + "\"; for the " + what +
                       " there are: " + able);
    if (reason->empty())
      throw ValueError(begin + "implementation \"" + base + "\" has no plans to choose from, got \"" +
                       all_of_it + '"');
    throw ValueError(begin + "implementation \"" + all_of_it + "\" cannot compute the " + what + ": " +
                     *reason + "; these can: " + able);
  }
  /// Why the one with this name, which is for the problem's device if there is such a one, cannot compute a
  /// pass: empty where it can, nothing where none has the name.
  std::optional<std::string> why_not(const Problem& problem, Pass pass, std::string_view name) const {
    std::optional<std::string> reason;
    bool found = false;
    if (name == "cudnn") reason = "this is Pleat built without cuDNN";
    if (name == "onednn") reason = "this is Pleat built without oneDNN";
    for (const I* one : all_)
      if (one->name() == name && (!found || one->runs_on(problem.device))) {
        reason = one->unsupported(problem, pass);
        found = true;
      }
    return reason;
  }

 private:
  static std::string_view without_plan(std::string_view name) { return name.substr(0, name.find(':')); }
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

}  // namespace pleat::ops
