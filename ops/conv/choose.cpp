#include <limits>

#include "pleat/core/base/format.h"
#include "pleat/core/base/host_device.h"
#include "pleat/ops/conv/conv_kernels.h"
#include "pleat/ops/conv/implementation.h"

namespace pleat::ops {

// Each in its file.
const ConvImplementation& direct_conv();
const ConvImplementation& direct_conv_cuda();
const ConvImplementation& unfold_conv();
const ConvImplementation& winograd_conv();
const ConvImplementation& unfold_conv_cuda();
const ConvImplementation& onednn_conv();
const ConvImplementation& cudnn_conv();
const ConvImplementation& reference_conv();

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

const Implementations<ConvImplementation>& all_conv_implementations() {
  static const auto& all = *new Implementations<ConvImplementation>([] {
    std::vector<const ConvImplementation*> list{&direct_conv(), &winograd_conv(), &unfold_conv(),
                                                &onednn_conv()};
    // On CUDA `direct` computes depthwise convolutions only, which read and write much for each product and
    // gain nothing from cuDNN's matrix products. That it is the faster there is reasoned, not measured on a
    // GPU.
    if constexpr (with_cuda) list.push_back(&direct_conv_cuda());
    list.push_back(&cudnn_conv());
    if constexpr (with_cuda) list.push_back(&unfold_conv_cuda());
    list.push_back(&reference_conv());
    return list;
  }());
  return all;
}

std::vector<std::string> conv_implementations(Device device) {
  return all_conv_implementations().names(device);
}

namespace {

/// What it costs to convert operands and result of a half type, as ConvImplementation::cost.
double cost_of_conversion(const ConvProblem& p, const ConvImplementation& implementation) {
  if (implementation.takes(p.dtype) || compute_dtype(p.dtype) == p.dtype) return 0;
  constexpr double of_element = 20;
  return of_element * static_cast<double>(
                          p.batch * (p.in_channels * p.input_pixels() + p.out_channels * p.output_pixels()));
}

}  // namespace

const std::string& requested_conv(ConvPass pass, const std::string& requested) {
  const ConvPolicyOptions& policy = ConvPolicy::current();
  switch (pass) {
    case ConvPass::forward:
      break;
    case ConvPass::backward_input:
      return first_named(requested, policy.backward_input_implementation, policy.implementation);
    case ConvPass::backward_weight:
      return first_named(requested, policy.backward_weight_implementation, policy.implementation);
  }
  return first_named(requested, policy.implementation);
}

std::shared_ptr<const ConvImplementation> find_conv(const ConvProblem& problem, ConvPass pass,
                                                    const std::string& name) {
  if (name.empty()) {
    const ConvImplementation* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const ConvImplementation* one : all_conv_implementations()) {
      if (!one->unsupported(problem, pass).empty()) continue;
      const double cost = one->cost(problem, pass) + cost_of_conversion(problem, *one);
      if (cost >= least) continue;
      best = one;
      least = cost;
    }
    return {std::shared_ptr<void>(), best};  // exists as long as the process: nothing to count
  }
  const std::size_t colon = name.find(':');
  const ConvImplementation* found =
      all_conv_implementations().find(problem, pass, std::string_view(name).substr(0, colon));
  if (found != nullptr && colon != std::string::npos) return found->with_plan(name.substr(colon + 1));
  return {std::shared_ptr<void>(), found};
}

std::shared_ptr<const ConvImplementation> choose_conv(const char* op, const ConvProblem& problem,
                                                      ConvPass pass, const std::string& requested) {
  const std::string& wanted = requested_conv(pass, requested);
  if (auto found = find_conv(problem, pass, wanted)) return found;
  const std::string base = wanted.substr(0, wanted.find(':'));
  const auto [known, reason, supported] = all_conv_implementations().refusal(problem, pass, base);
  check<ValueError>(known, "{}: there is no implementation \"{}\"; for the {} pass of {} there are: {}", op,
                    wanted, name(pass), problem.describe(), supported);
  check<ValueError>(!reason.empty(), "{}: implementation \"{}\" has no plans to choose from, got \"{}\"", op,
                    base, wanted);
  fail<ValueError>("{}: implementation \"{}\" cannot compute the {} pass of {}: {}; these can: {}", op,
                   wanted, name(pass), problem.describe(), reason, supported);
}

}  // namespace pleat::ops
