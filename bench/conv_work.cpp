#include "pleat/bench/conv_work.h"

#include <cmath>
#include <optional>

#include "pleat/bench/options.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench {
namespace {

using ops::ConvPass;

/// Float32 whatever the type: converted operands of all types then hold about the same numbers.
Tensor numbers(const Shape& shape, const ops::ConvProblem& problem, double scale) {
  const Tensor drawn = randn(shape, {.device = problem.device});
  return ops::to_format(ops::cast(drawn * scale, problem.dtype), problem.format);
}

}  // namespace

ConvWork::ConvWork(const ops::ConvProblem& problem, ConvPass pass) : requested_(problem) {
  const auto make = [&](const Shape& shape, double scale) { return numbers(shape, problem, scale); };
  Tensor x, w, dy, bias;
  if (pass != ConvPass::forward) dy = make(problem.output_shape(), 1);
  if (pass != ConvPass::backward_input) x = make(problem.input_shape(), 1);
  if (pass != ConvPass::backward_weight)
    w = make(problem.weight_shape(), 1 / std::sqrt(static_cast<double>(problem.depth())));
  if (pass == ConvPass::forward && problem.bias)
    bias = ops::cast(randn({problem.out_channels}, {.device = problem.device}), problem.dtype);
  call_ = !dy.defined() ? ops::forward_call(x, w, bias, options({}))
          : w.defined() ? ops::backward_input_call(dy, w, problem.input_shape(), options({}))
                        : ops::backward_weight_call(dy, x, problem.weight_shape(), options({}));
}

Tensor ConvWork::run(const std::string& implementation) const {
  const ConvOptions how = options(implementation);
  if (call_.pass == ConvPass::forward) return ops::conv_forward(call_.x, call_.w, call_.bias, how);
  if (call_.pass == ConvPass::backward_input)
    return ops::conv_backward_input(call_.dy, call_.w, problem().input_shape(), how);
  return ops::conv_backward_weight(call_.dy, call_.x, problem().weight_shape(), how);
}

double ConvWork::bytes() const {
  const ops::ConvProblem& p = problem();
  return static_cast<double>(count(p.input_shape()) + count(p.weight_shape()) + count(p.output_shape())) *
         static_cast<double>(size_of(p.dtype));
}

ConvOptions ConvWork::options(const std::string& implementation) const {
  const auto first = static_cast<std::size_t>(3 - requested_.spatial_dims);
  const auto last = [&](const ops::Spatial& sizes) {
    return std::vector<int64_t>(sizes.begin() + first, sizes.end());
  };
  std::vector<std::pair<int64_t, int64_t>> padding;
  for (std::size_t d = first; d < 3; ++d)
    padding.emplace_back(requested_.padding_low[d], requested_.padding_high[d]);
  return {.stride = last(requested_.stride),
          .padding = Padding(padding),
          .dilation = last(requested_.dilation),
          .groups = requested_.groups,
          .implementation = implementation,
          // On CUDA both formats are computed in, by implementations that can.
          .format = requested_.device.is_cuda() ? std::optional(requested_.format) : std::nullopt,
          .precision = requested_.precision};
}

std::vector<std::string> ConvWork::supporting(bool with_plans) const {
  std::vector<std::string> names;
  for (const std::string& name : ops::conv_implementations(problem().device)) {
    if (name == "reference" || !unsupported(name).empty()) continue;
    const std::vector<std::string> known = with_plans ? plans(name) : std::vector<std::string>();
    if (known.empty()) names.push_back(name);
    for (const std::string& plan : known) names.push_back(name + ':' + plan);
  }
  if (names.empty()) names.emplace_back("reference");
  return names;
}

std::string ConvWork::with_plan(const std::string& name) const {
  const auto found = ops::all_conv_implementations().find(problem(), call_.pass, name);
  if (found == nullptr || name.find(':') != std::string::npos) return name;
  const auto plans = found->plans(ops::solved_problem(problem(), *found), call_.pass);
  return plans.empty() ? std::string(found->name()) : fmt::format("{}:{}", found->name(), plans.front());
}

std::string ConvWork::unsupported(const std::string& implementation) const {
  const std::string base = implementation.substr(0, implementation.find(':'));
  const auto& all = ops::all_conv_implementations();
  if (all.find(problem(), call_.pass, base) != nullptr) return {};
  if (!contains(all.names(problem().device), base))
    return fmt::format("there is no implementation \"{}\" on {}", base, problem().device);
  return *all.why_not(problem(), call_.pass, base);
}

std::vector<std::string> ConvWork::plans(const std::string& implementation) const {
  const auto found = ops::all_conv_implementations().find(problem(), call_.pass, implementation);
  if (found == nullptr) return {};
  return found->plans(ops::solved_problem(problem(), *found), call_.pass);
}

void ConvWork::describe(const std::string& implementation, Record& record) const {
  const double valid = problem().valid_flops(), all = record.value("flops").value_or(0);
  record.set_value("flops_valid", valid);
  record.set_value("gflops_valid", valid / record.time->median() / 1e9);
  if (const auto share = record.value("share_of_peak"))
    record.set_value("share_of_peak_valid", *share * valid / all);
  const auto found = ops::all_conv_implementations().find(problem(), call_.pass, implementation);
  check<ValueError>(found != nullptr, "conv: there is no implementation \"{}\" for this problem",
                    implementation);
  const ops::ConvProblem solved = ops::solved_problem(problem(), *found);
  record.set_value("workspace_bytes", static_cast<double>(found->workspace_bytes(solved, call_.pass)));
  const std::string ran = with_plan(implementation);
  if (const std::size_t colon = ran.find(':'); colon != std::string::npos)
    record.set_detail("plan", ran.substr(colon + 1));
  record.set_detail("solved_as", solved.describe());
  if (with_plan("") == ran) record.set_detail("chosen", "yes");
}

std::string ConvWork::exact_implementation() const {
  constexpr int64_t quick = 2'000'000'000;
  return problem().flops() <= quick ? "reference" : "unfold";
}

Tensor ConvWork::exact() const {
  ConvWork in_double = *this;
  ops::ConvCall& call = in_double.call_;
  for (Tensor* operand : {&call.x, &call.w, &call.dy, &call.bias})
    if (operand->defined()) *operand = ops::cast(ops::to_device(*operand, Device()), float64);
  in_double.requested_.dtype = float64;
  in_double.requested_.device = Device();
  return in_double.run(exact_implementation());
}

}  // namespace pleat::bench
