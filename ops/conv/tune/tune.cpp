#include "pleat/ops/conv/tune/tune.h"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/tune/time_candidates.h"
#include "pleat/ops/conv/tune/tune_cache.h"

namespace pleat::ops {
namespace {

TuneCache& known() {
  static TuneCache cache(4096);
  return cache;
}

/// Held while candidates are timed: two threads at a time would slow each other down.
std::mutex& timing_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<ConvTiming> tune(const ConvCall& call, const std::string& wanted, const TuneOptions& how) {
  const std::vector<ConvCandidate> candidates = conv_candidates(call, wanted);
  // None: this says why.
  if (candidates.empty()) choose_conv(call.op, call.problem, call.pass, wanted);
  std::vector<ConvTiming> timings =
      time_candidates(call, candidates, *stopwatch_for(call.problem.device), how);
  known().put(TuneEntry{tune_key(call, wanted), timings});
  return timings;
}

/// What is known to be the fastest, if it exists here: a file may say anything.
std::shared_ptr<const ConvImplementation> known_winner(const ConvCall& call, const TuneKey& key) {
  const std::optional<std::string> winner = known().winner(key);
  return winner.has_value() ? find_conv(call.problem, call.pass, *winner) : nullptr;
}

}  // namespace

std::shared_ptr<const ConvImplementation> choose(const ConvCall& call) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  if (!policy.benchmark || is_timing() || call.is_empty())
    return choose_conv(call.op, call.problem, call.pass, call.requested);
  const std::string wanted = requested_conv(call.pass, call.requested);
  const TuneKey key = tune_key(call, wanted);
  if (auto winner = known_winner(call, key)) return winner;
  // The fastest differs from run to run, and with it the last bits of the result.
  if (policy.deterministic) return choose_conv(call.op, call.problem, call.pass, wanted);
  const std::lock_guard lock(timing_mutex());
  if (auto winner = known_winner(call, key)) return winner;  // another thread was first
  return choose_conv(call.op, call.problem, call.pass, tune(call, wanted, {}).front().implementation);
}

std::vector<ConvTiming> tune_conv(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  const ConvOptions& options, TuneOptions how) {
  check<ValueError>(how.warmups >= 0 && how.samples >= 1,
                    "tune_conv: needs warmups >= 0 and samples >= 1, got {} and {}", how.warmups,
                    how.samples);
  const ConvCall forward = forward_call(x, w, bias, options);
  check<ValueError>(!forward.is_empty(), "tune_conv: the result {} has no elements to time",
                    forward.problem.output_shape());
  std::vector<ConvTiming> timings;
  const auto add = [&](const ConvCall& call) {
    const std::lock_guard lock(timing_mutex());
    const std::vector<ConvTiming> found = tune(call, requested_conv(call.pass, call.requested), how);
    timings.insert(timings.end(), found.begin(), found.end());
    return found.front().implementation;
  };
  // The gradients get what a network would give them: dy in the format that the forward pass writes.
  const std::string fastest = add(forward);
  const Tensor dy = forward.run(*choose_conv(forward.op, forward.problem, forward.pass, fastest));
  add(backward_input_call(dy, w, x.shape(), options));
  add(backward_weight_call(dy, x, w.shape(), options));
  return timings;
}

std::vector<ConvTiming> tune_conv(const Tensor& x, const Tensor& w, const ConvOptions& options,
                                  TuneOptions how) {
  return tune_conv(x, w, {}, options, how);
}

std::string describe(const ConvTiming& timing) {
  if (!timing.failure.empty())
    return fmt::format("{:<15} {:<24} failed: {}", name(timing.pass), timing.implementation, timing.failure);
  return fmt::format("{:<15} {:<24} {:>10.4f} ms  (best {:.4f})  {:>9.1f} GFLOP/s  workspace {}",
                     name(timing.pass), timing.implementation, timing.milliseconds, timing.fastest,
                     timing.gflops, text_of_bytes(timing.workspace_bytes));
}

std::size_t ConvTuner::size() { return known().size(); }
std::size_t ConvTuner::limit() { return known().limit(); }
void ConvTuner::set_limit(std::size_t most) {
  check<ValueError>(most >= 1, "ConvTuner::set_limit: needs at least 1");
  known().set_limit(most);
}
void ConvTuner::clear() { known().clear(); }

std::string ConvTuner::table() {
  std::string text;
  for (const TuneEntry& entry : known().entries()) {
    text += fmt::format("{}\n  on {} ({})\n", entry.key.problem, entry.key.machine, entry.key.versions);
    for (const ConvTiming& timing : entry.timings) text += "  " + describe(timing) + '\n';
  }
  return text;
}

void ConvTuner::save(const std::filesystem::path& path) {
  write_file("ConvTuner::save", path, tuning_text(known().entries()));
}

std::size_t ConvTuner::load(const std::filesystem::path& path, ReadOptions options) {
  const std::vector<TuneEntry> entries = read_tuning(path.string(), options);
  known().put(entries);
  return entries.size();
}

}  // namespace pleat::ops
