#include <algorithm>

#include <fmt/format.h>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {
namespace {

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
  // On CUDA `direct` computes depthwise convolutions only, which read and write much for each product and
  // gain nothing from cuDNN's matrix products. That it is the faster there is reasoned, not measured on a
  // GPU.
  static const std::vector<const ConvImplementation*> table = [] {
    std::vector<const ConvImplementation*> list{&direct_conv(), &cudnn_conv(), &unfold_conv(),
                                                &reference_conv()};
    if constexpr (with_cuda)
      list = {&direct_conv_cuda(), &direct_conv(), &cudnn_conv(),
              &unfold_conv_cuda(), &unfold_conv(), &reference_conv()};
    return list;
  }();
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

const std::string& requested_conv(ConvPass pass, const std::string& requested) {
  if (!requested.empty()) return requested;
  const ConvPolicyOptions& policy = ConvPolicy::current();
  const std::string& own = pass == ConvPass::backward_input    ? policy.backward_input_implementation
                           : pass == ConvPass::backward_weight ? policy.backward_weight_implementation
                                                               : policy.implementation;
  return own.empty() ? policy.implementation : own;
}

std::shared_ptr<const ConvImplementation> find_conv(const ConvProblem& problem, ConvPass pass,
                                                    const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string_view base = std::string_view(name).substr(0, colon);
  // One name may stand for several, each for a device.
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    if (!name.empty() && implementation->name() != base) continue;
    if (!implementation->unsupported(problem, pass).empty()) continue;
    if (colon != std::string::npos) return implementation->with_plan(name.substr(colon + 1));
    return {std::shared_ptr<void>(), implementation};  // lives as long as the process: nothing to count
  }
  return nullptr;
}

std::shared_ptr<const ConvImplementation> choose_conv(const char* op, const ConvProblem& problem,
                                                      ConvPass pass, const std::string& requested) {
  const std::string& wanted = requested_conv(pass, requested);
  if (auto found = find_conv(problem, pass, wanted)) return found;
  const std::string base = wanted.substr(0, wanted.find(':'));
  std::string reason;
  for (const ConvImplementation* implementation : all_conv_implementations()) {
    if (implementation->name() != base) continue;
    const std::string own = implementation->unsupported(problem, pass);
    check<ValueError>(!own.empty(), "{}: implementation \"{}\" has no plans to choose from, got \"{}\"", op,
                      base, wanted);
    if (reason.empty() || implementation->runs_on(problem.device)) reason = own;
  }
  check<ValueError>(reason.empty(),
                    "{}: implementation \"{}\" cannot compute the {} pass of {}: {}; these can: {}", op,
                    wanted, name(pass), problem.describe(), reason, supporting(problem, pass));
  fail<ValueError>("{}: there is no implementation \"{}\"; for the {} pass of {} there are: {}", op, wanted,
                   name(pass), problem.describe(), supporting(problem, pass));
}

}  // namespace pleat::ops
