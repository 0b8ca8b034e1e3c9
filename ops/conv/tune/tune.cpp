#include "pleat/ops/conv/tune/tune.h"

#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/ops/conv/call.h"
#include "pleat/ops/conv/tune/candidates.h"

namespace pleat::ops {
namespace {

TuneCache<ConvTiming>& known() {
  static TuneCache<ConvTiming> cache(4096);
  return cache;
}

/// Held while candidates are timed: two threads at a time would slow each other down.
std::mutex& timing_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string_view text(Precision precision) {
  return precision == Precision::highest ? "highest" : precision == Precision::high ? "high" : "medium";
}
std::string_view text(MemoryFormat format) {
  return format == MemoryFormat::channels_last ? "channels_last" : "contiguous";
}
std::string text(const Spatial& sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }

std::string layout_text(const char* role, const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const MemoryFormat format = tensor.memory_format();
  if (tensor.is_contiguous(format)) return fmt::format(" {} {}", role, text(format));
  return fmt::format(" {} strides {}", role, fmt::join(tensor.strides(), ","));
}

std::string problem_text(const ConvCall& call, const std::string& requested) {
  // A binding for each member: a new one does not compile until it has a place in the key.
  const auto& [dims, batch, in_channels, out_channels, groups, input, kernel, output, stride, low, high,
               dilation, dtype, device, format, result_format, precision, bias] = call.problem;
  std::string key = fmt::format(
      "conv{}d {} n{} c{} k{} g{} in {} kernel {} out {} stride {} padding {}-{} dilation {} {} on {} {}{} "
      "{} "
      "precision {}",
      dims, name(call.pass), batch, in_channels, out_channels, groups, text(input), text(kernel),
      text(output), text(stride), text(low), text(high), text(dilation), dtype,
      device.is_cuda() ? "cuda" : "cpu", text(format),
      result_format.has_value() ? fmt::format(" to {}", text(*result_format)) : std::string(),
      bias ? "with bias" : "without bias", text(precision));
  key += layout_text("x", call.x) + layout_text("w", call.w) + layout_text("dy", call.dy);
  const ConvPolicyOptions& policy = ConvPolicy::current();
  key += fmt::format(" workspace {}", policy.workspace_limit);
  if (policy.deterministic) key += " deterministic";
  if (!requested.empty()) key += fmt::format(" by {}", requested);
  return key;
}

TuneKey key_of(const ConvCall& call, const std::string& requested) {
  return tune_key(call.problem.device, problem_text(call, requested));
}

std::vector<ConvTiming> tune(const ConvCall& call, const std::string& requested, const TuneOptions& how) {
  const std::vector<Candidate> candidates = conv_candidates(call, requested);
  // None: this throws the reason.
  if (candidates.empty()) choose_conv(call.op, call.problem, call.pass, requested);
  std::vector<ConvTiming> timings = time_conv(call, candidates, *stopwatch_for(call.problem.device), how);
  known().put(ConvTuneEntry{key_of(call, requested), timings});
  return timings;
}

/// What is known to be the fastest, if it exists here: a file may say anything.
std::shared_ptr<const ConvImplementation> known_winner(const ConvCall& call, const TuneKey& key) {
  const std::optional<std::string> winner = known().winner(key);
  return winner.has_value() ? find_conv(call.problem, call.pass, *winner) : nullptr;
}

}  // namespace

std::vector<Candidate> conv_candidates(const ConvCall& call, const std::string& requested) {
  const std::string base = requested.substr(0, requested.find(':'));
  std::vector<Candidate> candidates;
  std::optional<Candidate> reference;
  std::set<std::string_view> seen;
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    if (!requested.empty() && implementation->name() != base) continue;
    if (!implementation->unsupported(call.problem, call.pass).empty()) continue;
    if (!seen.insert(implementation->name()).second) continue;  // one name may stand for several
    const std::string name(implementation->name());
    const auto add = [&](const std::string& own) {
      const auto chosen = choose_conv(call.op, call.problem, call.pass, own);
      Candidate candidate{.name = own,
                          .run = [call, chosen] { call.run(*chosen); },
                          .workspace_bytes =
                              [call, chosen] {
                                return chosen->workspace_bytes(solved_problem(call.problem, *chosen),
                                                               call.pass);
                              }};
      if (name == "reference")
        reference = std::move(candidate);
      else
        candidates.push_back(std::move(candidate));
    };
    if (requested.size() > base.size()) {
      add(requested);  // names a plan, too
      continue;
    }
    try {
      const auto plans = implementation->plans(solved_problem(call.problem, *implementation), call.pass);
      for (const std::string& plan : plans) add(name + ':' + plan);
      if (plans.empty()) add(name);
    } catch (const DeviceLostError&) {
      throw;
    } catch (const Error& error) {
      candidates.push_back({name, nullptr, nullptr, error.what()});
    }
  }
  if (candidates.empty() && reference.has_value()) candidates.push_back(std::move(*reference));
  return candidates;
}

std::vector<ConvTiming> time_conv(const ConvCall& call, const std::vector<Candidate>& candidates,
                                  Stopwatch& stopwatch, const TuneOptions& how) {
  std::vector<ConvTiming> timings;
  for (CandidateTime& time : time_candidates(call.op, candidates, stopwatch, how.warmups, how.samples)) {
    const auto flops = static_cast<double>(call.problem.flops());
    timings.push_back({.pass = call.pass,
                       .implementation = std::move(time.name),
                       .milliseconds = time.milliseconds,
                       .fastest = time.fastest,
                       .workspace_bytes = time.workspace_bytes,
                       .gflops = time.milliseconds > 0 ? flops / time.milliseconds / 1e6 : 0,
                       .failure = std::move(time.failure)});
  }
  return timings;
}

std::shared_ptr<const ConvImplementation> choose(const ConvCall& call) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  if (!policy.benchmark || is_timing() || call.is_empty())
    return choose_conv(call.op, call.problem, call.pass, call.requested);
  const std::string requested = requested_conv(call.pass, call.requested);
  const TuneKey key = key_of(call, requested);
  if (auto winner = known_winner(call, key)) return winner;
  // The fastest differs from run to run, and with it the last bits of the result.
  if (policy.deterministic) return choose_conv(call.op, call.problem, call.pass, requested);
  const std::lock_guard lock(timing_mutex());
  if (auto winner = known_winner(call, key)) return winner;  // another thread was first
  return choose_conv(call.op, call.problem, call.pass, tune(call, requested, {}).front().implementation);
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
  for (const ConvTuneEntry& entry : known().entries()) {
    text += fmt::format("{}\n  on {} ({})\n", entry.key.problem, entry.key.machine, entry.key.versions);
    for (const ConvTiming& timing : entry.timings) text += "  " + describe(timing) + '\n';
  }
  return text;
}

void ConvTuner::save(const std::filesystem::path& path) {
  write_file("ConvTuner::save", path, tuning_text(known().entries()));
}

std::size_t ConvTuner::load(const std::filesystem::path& path, ReadOptions options) {
  const std::vector<ConvTuneEntry> entries = read_tuning(path.string(), options);
  known().put(entries);
  return entries.size();
}

}  // namespace pleat::ops
