// Which functions of a profile one call would compute, and what that would save.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pleat/profile/profile.h"

namespace pleat::profile {
namespace {

/// Functions that are called one after the other, and the call that computes them all.
struct Fusion {
  std::array<std::string_view, 3> functions;  ///< the last may be empty
  double saved;                               ///< of what those after the first take, measured
  std::string_view call;

  std::size_t size() const { return functions[2].empty() ? 2 : 3; }
  std::string name() const {
    return fmt::format("{}", fmt::join(functions.begin(), functions.begin() + size(), " + "));
  }
};

// docs/measurements.md ("One call") has what they save; linear_act saves too little to be named.
constexpr Fusion fusions[] = {
    {{"batch_norm", "add", "relu"},
     0.4,
     "norm.forward(x, shortcut, {.min = 0}), or .residual and .bounds in batch_norm's options,"},
    {{"batch_norm", "relu"}, 0.8, "norm.forward(x, {}, {.min = 0}), or .bounds in batch_norm's options,"}};

/// Whether the later event has an input like that of the other, whose result is.
bool takes_result(const Event& after, const Event& event) {
  return !event.inputs.empty() && std::ranges::any_of(after.inputs, [&](const TensorInfo& input) {
    const TensorInfo& result = event.inputs[0];
    return input.defined && input.shape == result.shape && input.dtype == result.dtype &&
           input.device == result.device;
  });
}

class Finder {
 public:
  explicit Finder(const Profile& profile) : profile_(profile), backward_(profile.events.size()) {
    std::vector<bool> is_inside(profile.events.size());  // of a function or a node
    for (std::size_t i = 0; i < profile.events.size(); ++i) {
      const Event& event = profile.events[i];
      const auto computes = [](RangeKind kind) {
        return kind == RangeKind::op || kind == RangeKind::backward;
      };
      is_inside[i] =
          event.parent != none && (is_inside[event.parent] || computes(profile.events[event.parent].kind));
      if (is_inside[i]) continue;
      if (event.kind == RangeKind::op) functions_.push_back(i);
      if (event.forward != none) backward_[event.forward] += time(i);
    }
  }

  /// Whether the functions from the i-th on are those of the fusion.
  bool is_at(std::size_t i, const Fusion& fusion) const {
    if (i + fusion.size() > functions_.size()) return false;
    const Event& first = profile_.events[functions_[i]];
    for (std::size_t n = 0; n < fusion.size(); ++n) {
      const Event& event = profile_.events[functions_[i + n]];
      if (event.name != fusion.functions[n] || event.thread != first.thread) return false;
      if (n > 0 && !takes_result(event, first)) return false;
    }
    return true;
  }

  /// What one call would save, ns.
  double saved(std::size_t i, const Fusion& fusion) const {
    int64_t sum = 0;
    for (std::size_t n = i + 1; n < i + fusion.size(); ++n)
      sum += time(functions_[n]) + backward_[functions_[n]];
    return fusion.saved * static_cast<double>(sum);
  }

  std::size_t functions() const { return functions_.size(); }

 private:
  /// Of the device on which it is computed.
  int64_t time(std::size_t event) const {
    const int64_t on_device = profile_.on_cuda ? device_time(profile_, event) : 0;
    return on_device > 0 ? on_device : profile_.events[event].duration();
  }

  const Profile& profile_;
  std::vector<std::size_t> functions_;  ///< those not called by others, in their order
  std::vector<int64_t> backward_;       ///< what a function's nodes took
};

}  // namespace

std::vector<std::string> fusion_hints(const Profile& profile, double least) {
  struct Found {
    const Fusion* fusion;
    int64_t calls = 0;
    double saved = 0;
  };
  std::vector<Found> all;
  for (const Fusion& fusion : fusions) all.push_back({&fusion});
  const Finder finder(profile);
  for (std::size_t i = 0; i < finder.functions(); ++i)
    for (Found& found : all)
      if (finder.is_at(i, *found.fusion)) ++found.calls, found.saved += finder.saved(i, *found.fusion);

  double whole = 0;
  for (std::size_t i = 0; i < profile.events.size(); ++i) whole += static_cast<double>(self_time(profile, i));
  double on_devices = 0;
  for (const DeviceActivity& activity : profile.activities)
    on_devices += static_cast<double>(activity.duration());
  if (on_devices > 0) whole = on_devices;
  std::ranges::stable_sort(all, std::greater(), &Found::saved);
  std::vector<std::string> hints;
  for (const Found& found : all)
    if (found.calls > 0 && found.saved >= least * whole)
      hints.push_back(fmt::format("{}, {} {}: one call, {} would save about {:.0f} % of the time",
                                  found.fusion->name(), found.calls, found.calls == 1 ? "call" : "calls",
                                  found.fusion->call, 100 * found.saved / whole));
  return hints;
}

}  // namespace pleat::profile
