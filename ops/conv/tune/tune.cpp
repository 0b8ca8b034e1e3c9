#include "pleat/ops/conv/tune/tune.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/ops/conv/call.h"

/// What is timed for a convolution, and what its time depends on. ops/tune/ times it and keeps what is known.

namespace pleat::ops {
namespace {

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

TuneKey key_of(const ConvCall& call) {
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
  if (!call.requested.empty()) key += fmt::format(" by {}", call.requested);
  return tune_key(device, key);
}

std::vector<Timing> time_all(const ConvCall& call, const TuneOptions& how) {
  const std::vector<Candidate> candidates = conv_candidates(call, call.requested);
  // None: this throws the reason.
  if (candidates.empty()) (void)call.implementation(call.requested);
  return time_conv(call, candidates, *stopwatch_for(call.problem.device), how);
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
      const auto chosen = call.implementation(own);
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

std::vector<Timing> time_conv(const ConvCall& call, const std::vector<Candidate>& candidates,
                              Stopwatch& stopwatch, const TuneOptions& how) {
  return time_candidates({call.op, name(call.pass), static_cast<double>(call.problem.flops())}, candidates,
                         stopwatch, how);
}

std::shared_ptr<const ConvImplementation> choose(const ConvCall& call) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  if (!policy.benchmark || is_timing() || call.is_empty()) return call.implementation(call.requested);
  std::function<std::vector<Timing>()> time = [&] { return time_all(call, {}); };
  // The fastest differs from run to run, and with it the last bits of the result.
  if (policy.deterministic) time = nullptr;
  return fastest(all_conv_implementations(), call.op, call.problem, call.pass, call.requested, key_of(call),
                 time);
}

std::vector<Timing> tune_conv(const Tensor& x, const Tensor& w, const Tensor& bias,
                              const ConvOptions& options, TuneOptions how) {
  check<ValueError>(how.warmups >= 0 && how.samples >= 1,
                    "tune_conv: needs warmups >= 0 and samples >= 1, got {} and {}", how.warmups,
                    how.samples);
  const ConvCall forward = forward_call(x, w, bias, options);
  check<ValueError>(!forward.is_empty(), "tune_conv: the result {} has no elements to time",
                    forward.problem.output_shape());
  std::vector<Timing> timings;
  const auto add = [&](const ConvCall& call) {
    const std::vector<Timing> found = time_and_keep(key_of(call), [&] { return time_all(call, how); });
    timings.insert(timings.end(), found.begin(), found.end());
    return found.front().implementation;
  };
  // The gradients get what a network would give them: dy in the format that the forward pass writes.
  const std::string winner = add(forward);
  const Tensor dy = forward.run(*forward.implementation(winner));
  add(backward_input_call(dy, w, x.shape(), options));
  add(backward_weight_call(dy, x, w.shape(), options));
  return timings;
}

std::vector<Timing> tune_conv(const Tensor& x, const Tensor& w, const ConvOptions& options, TuneOptions how) {
  return tune_conv(x, w, {}, options, how);
}

}  // namespace pleat::ops
