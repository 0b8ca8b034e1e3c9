#include <algorithm>

#include <fmt/format.h>

#include "pleat/core/format.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {
namespace {

const std::string& policy_wish(ConvPass pass) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  const std::string& own = pass == ConvPass::backward_input    ? policy.backward_input_implementation
                           : pass == ConvPass::backward_weight ? policy.backward_weight_implementation
                                                               : policy.implementation;
  return own.empty() ? policy.implementation : own;
}

std::string supporting(const ConvProblem& problem, ConvPass pass) {
  std::vector<std::string_view> names;
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    const bool known = std::find(names.begin(), names.end(), implementation->name()) != names.end();
    if (!known && implementation->unsupported(problem, pass).empty()) names.push_back(implementation->name());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view name(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return "forward";
    case ConvPass::backward_input:
      return "backward_input";
    case ConvPass::backward_weight:
      break;
  }
  return "backward_weight";
}

const std::vector<const ConvImplementation*>& all_conv_implementations() {
  static const std::vector<const ConvImplementation*> table = {
      &direct_conv(), &cudnn_conv(), &grid_unfold_conv(), &unfold_conv(), &reference_conv()};
  return table;
}

std::vector<std::string> conv_implementations(Device device) {
  std::vector<std::string> names;
  for (const ConvImplementation* implementation : all_conv_implementations())
    if (implementation->runs_on(device) &&
        std::find(names.begin(), names.end(), implementation->name()) == names.end())
      names.emplace_back(implementation->name());
  return names;
}

const ConvImplementation& choose_conv(const char* op, const ConvProblem& problem, ConvPass pass,
                                      const std::string& wish) {
  const std::string& wanted = wish.empty() ? policy_wish(pass) : wish;
  // One name may stand for several, each for a device.
  std::string reason;
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    if (!wanted.empty() && implementation->name() != wanted) continue;
    reason = implementation->unsupported(problem, pass);
    if (reason.empty()) return *implementation;
  }
  check<ValueError>(reason.empty(),
                    "{}: implementation \"{}\" cannot compute the {} pass of {}: {}; these can: {}", op,
                    wanted, name(pass), problem.describe(), reason, supporting(problem, pass));
  fail<ValueError>("{}: there is no implementation \"{}\"; for the {} pass of {} there are: {}", op, wanted,
                   name(pass), problem.describe(), supporting(problem, pass));
}

}  // namespace pleat::ops
