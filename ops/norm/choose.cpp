#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {

// Each in its file; null where this build is without it.
const BatchNormImplementation* native_batch_norm();
const BatchNormImplementation* native_batch_norm_cuda();
const BatchNormImplementation* onednn_batch_norm();
const BatchNormImplementation* cudnn_batch_norm();
const BatchNormImplementation* reference_batch_norm();

const Implementations<BatchNormImplementation>& batch_norm_implementations() {
  static const auto& all = *new Implementations<BatchNormImplementation>([] {
    std::vector<const BatchNormImplementation*> list{native_batch_norm(), onednn_batch_norm()};
    if constexpr (with_cuda) list.push_back(native_batch_norm_cuda());
    list.insert(list.end(), {cudnn_batch_norm(), reference_batch_norm()});
    return list;
  }());
  return all;
}

std::string_view name(BatchNormPass pass) { return pass == BatchNormPass::forward ? "forward" : "backward"; }

namespace {

/// The implementation that options or a policy name for a pass alone, else for both.
template <class Options>
const std::string& named(const Options& options, BatchNormPass pass) {
  const bool own = pass == BatchNormPass::backward && !options.backward_implementation.empty();
  return own ? options.backward_implementation : options.implementation;
}

TuneKey key_of(const BatchNormProblem& problem, BatchNormPass pass, const std::string& conditions) {
  // A binding for each member: a new one does not compile until it has a place in the key.
  const auto& [view, dtype, device, training, eps, bounds, residual] = problem;
  const auto& [images, channels, pixels, channels_last] = view;
  return tune_key(device, fmt::format("batch_norm {} {} [{}, {}, {}] {} {} on {} eps {}{}{}{}", name(pass),
                                      training ? "training" : "evaluation", images, channels, pixels,
                                      channels_last ? "channels_last" : "contiguous", dtype,
                                      device.is_cuda() ? "cuda" : "cpu", eps, residual ? " residual" : "",
                                      bounds.any() ? " within " + to_string(bounds) : "", conditions));
}

}  // namespace

const BatchNormImplementation& choose_batch_norm(const char* op, const BatchNormProblem& problem,
                                                 BatchNormPass pass, const BatchNormOptions& options,
                                                 const BatchNormTrial& trial) {
  const auto& all = batch_norm_implementations();
  const BatchNormPolicyOptions& policy = BatchNormPolicy::current();
  const std::string& own = named(options, pass);
  const std::string& requested = own.empty() ? named(policy, pass) : own;
  if (policy.benchmark && requested.empty() && !is_timing() && problem.view.numel() > 0) {
    std::vector<Candidate> candidates;
    for (const BatchNormImplementation* one : all)
      if (one->name() != "reference" && one->unsupported(problem, pass).empty())
        candidates.push_back({.name = std::string(one->name()), .run = [&trial, one] { trial.run(*one); }});
    if (candidates.size() > 1)
      return *fastest(all, op, problem, pass, requested, key_of(problem, pass, trial.conditions()), [&] {
        return time_candidates({op, name(pass)}, candidates, *stopwatch_for(problem.device), {});
      });
  }
  return *all.get(op, problem, pass, requested);
}

}  // namespace pleat::ops
