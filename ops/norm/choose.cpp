#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/norm/implementation.h"

namespace pleat::ops {

// Each in its file.
const BatchNormImplementation& native_batch_norm();
const BatchNormImplementation& native_batch_norm_cuda();
const BatchNormImplementation& cudnn_batch_norm();
const BatchNormImplementation& reference_batch_norm();

const Implementations<BatchNormImplementation>& batch_norm_implementations() {
  static const Implementations<BatchNormImplementation> all([] {
    std::vector<const BatchNormImplementation*> list{&native_batch_norm()};
    if constexpr (with_cuda) list.push_back(&native_batch_norm_cuda());
    list.insert(list.end(), {&cudnn_batch_norm(), &reference_batch_norm()});
    return list;
  }());
  return all;
}

const BatchNormImplementation& choose_batch_norm(const char* op, const BatchNormProblem& problem,
                                                 BatchNormPass pass, const std::string& requested) {
  const BatchNormPolicyOptions& policy = BatchNormPolicy::current();
  const std::string& name =
      pass == BatchNormPass::backward
          ? first_named(requested, policy.backward_implementation, policy.implementation)
          : first_named(requested, policy.implementation);
  const auto& all = batch_norm_implementations();
  if (const BatchNormImplementation* found = all.find(problem, pass, name)) return *found;
  const auto [known, reason, supported] = all.refusal(problem, pass, name);
  fail<ValueError>("{}: implementation \"{}\" cannot do {}: {}; these can: {}", op, name, problem.describe(),
                   known ? reason : "there is none of that name", supported);
}

}  // namespace pleat::ops
