#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/norm/implementation.h"
#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {

// Each in its file.
const BatchNormImplementation& native_batch_norm();
const BatchNormImplementation& native_batch_norm_cuda();
const BatchNormImplementation& onednn_batch_norm();
const BatchNormImplementation& cudnn_batch_norm();
const BatchNormImplementation& reference_batch_norm();

const Implementations<BatchNormImplementation>& batch_norm_implementations() {
  static const auto& all = *new Implementations<BatchNormImplementation>([] {
    std::vector<const BatchNormImplementation*> list{&native_batch_norm(), &onednn_batch_norm()};
    if constexpr (with_cuda) list.push_back(&native_batch_norm_cuda());
    list.insert(list.end(), {&cudnn_batch_norm(), &reference_batch_norm()});
    return list;
  }());
  return all;
}

namespace {

const char* name(BatchNormPass pass) { return pass == BatchNormPass::forward ? "forward" : "backward"; }

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

/// The fastest but for the reference; null where there is nothing to choose from.
const BatchNormImplementation* fastest_batch_norm(const char* op, const BatchNormProblem& problem,
                                                  BatchNormPass pass, const BatchNormTrial& trial) {
  const auto& all = batch_norm_implementations();
  std::vector<Candidate> candidates;
  for (const BatchNormImplementation* one : all)
    if (one->name() != "reference" && one->unsupported(problem, pass).empty())
      candidates.push_back({.name = std::string(one->name()), .run = [&trial, one] { trial.run(*one); }});
  if (candidates.size() < 2) return nullptr;
  const auto find = [&](const std::string& winner) { return all.find(problem, pass, winner); };
  return find(fastest(
      key_of(problem, pass, trial.conditions()),
      [&](const std::string& winner) { return find(winner) != nullptr; },
      [&] {
        return time_candidates({op, name(pass)}, candidates, *stopwatch_for(problem.device), {});
      }));
}

}  // namespace

const BatchNormImplementation& choose_batch_norm(const char* op, const BatchNormProblem& problem,
                                                 BatchNormPass pass, const std::string& requested,
                                                 const BatchNormTrial& trial) {
  const BatchNormPolicyOptions& policy = BatchNormPolicy::current();
  const std::string& name =
      pass == BatchNormPass::backward
          ? first_named(requested, policy.backward_implementation, policy.implementation)
          : first_named(requested, policy.implementation);
  if (policy.benchmark && name.empty() && !is_timing() && problem.view.numel() > 0)
    if (const BatchNormImplementation* found = fastest_batch_norm(op, problem, pass, trial)) return *found;
  const auto& all = batch_norm_implementations();
  if (const BatchNormImplementation* found = all.find(problem, pass, name)) return *found;
  const auto [known, reason, supported] = all.refusal(problem, pass, name);
  fail<ValueError>("{}: implementation \"{}\" cannot do {}: {}; these can: {}", op, name, problem.describe(),
                   known ? reason : "there is none of that name", supported);
}

}  // namespace pleat::ops
