#include <utility>
#include <vector>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat {

BatchNormPolicy::BatchNormPolicy(BatchNormPolicyOptions options) : scope_(std::move(options)) {}
const BatchNormPolicyOptions& BatchNormPolicy::current() {
  static const BatchNormPolicyOptions none;
  const BatchNormPolicyOptions* innermost = Scoped<BatchNormPolicyOptions>::innermost();
  return innermost != nullptr ? *innermost : none;
}

}  // namespace pleat

namespace pleat::ops {
namespace {

const std::string& requested_by_policy(BatchNormPass pass) {
  const BatchNormPolicyOptions& policy = BatchNormPolicy::current();
  const bool own = pass == BatchNormPass::backward && !policy.backward_implementation.empty();
  return own ? policy.backward_implementation : policy.implementation;
}

}  // namespace

std::span<const BatchNormImplementation* const> batch_norm_implementations() {
  static const std::vector<const BatchNormImplementation*> all = [] {
    std::vector<const BatchNormImplementation*> list{&native_batch_norm(), &cudnn_batch_norm(),
                                                     &reference_batch_norm()};
    if constexpr (with_cuda) list.insert(list.begin(), &native_batch_norm_cuda());
    return list;
  }();
  return all;
}

const BatchNormImplementation& choose_batch_norm(const char* op, const BatchNormProblem& problem,
                                                 BatchNormPass pass, const std::string& requested) {
  const std::string& name = requested.empty() ? requested_by_policy(pass) : requested;
  std::string able;
  std::string reason = "there is none of that name";
  for (const BatchNormImplementation* one : batch_norm_implementations()) {
    const std::string why = one->unsupported(problem, pass);
    if (why.empty() && (name.empty() || name == one->name())) return *one;
    if (why.empty() && able.find(one->name()) == std::string::npos)
      able += fmt::format("{}{}", able.empty() ? "" : ", ", one->name());
    if (name == one->name()) reason = why;
  }
  if (name.empty()) fail<DeviceError>("{}: no implementation for {}", op, problem.describe());
  fail<ValueError>("{}: implementation \"{}\" cannot do {}: {}; these can: {}", op, name, problem.describe(),
                   reason, able);
}

}  // namespace pleat::ops
