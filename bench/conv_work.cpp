#include "pleat/bench/conv_work.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "pleat/core/base/format.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/ops/conv/conv.h"
#include "pleat/ops/elementwise/arithmetic.h"

namespace pleat::bench {
namespace {

/// Float32 whatever the type: converted operands of all types then hold about the same numbers.
Tensor numbers(const Shape& shape, const ops::ConvProblem& problem, double scale) {
  const Tensor drawn = randn(shape, {.device = problem.device});
  return ops::to_format(ops::cast(ops::multiply(drawn, ops::number_like(scale, drawn)), problem.dtype),
                        problem.format);
}

std::vector<int64_t> last(const ops::Spatial& sizes, int dims) { return {sizes.end() - dims, sizes.end()}; }

}  // namespace

ConvWork::ConvWork(const ops::ConvProblem& problem, ops::ConvPass pass) : asked_(problem), pass_(pass) {
  const double scale = 1 / std::sqrt(static_cast<double>(problem.depth()));
  if (pass != ops::ConvPass::backward_input) x_ = numbers(problem.input_shape(), problem, 1);
  if (pass != ops::ConvPass::backward_weight) w_ = numbers(problem.weight_shape(), problem, scale);
  if (pass != ops::ConvPass::forward) dy_ = numbers(problem.output_shape(), problem, 1);
  if (pass == ops::ConvPass::forward && problem.bias)
    bias_ = ops::cast(randn({problem.out_channels}, {.device = problem.device}), problem.dtype);
  call_ = make_call();
}

ConvOptions ConvWork::options(const std::string& implementation) const {
  const int dims = asked_.spatial_dims;
  std::vector<std::pair<int64_t, int64_t>> padding;
  for (auto d = static_cast<std::size_t>(3 - dims); d < 3; ++d)
    padding.emplace_back(asked_.padding_low[d], asked_.padding_high[d]);
  return {.stride = last(asked_.stride, dims),
          .padding = Padding(padding),
          .dilation = last(asked_.dilation, dims),
          .groups = asked_.groups,
          .implementation = implementation,
          // On CUDA both formats are computed in, by implementations that can.
          .format = asked_.device.is_cuda() ? std::optional(asked_.format) : std::nullopt,
          .precision = asked_.precision};
}

ops::ConvCall ConvWork::make_call() const {
  switch (pass_) {
    case ops::ConvPass::forward:
      return ops::forward_call(x_, w_, bias_, options({}));
    case ops::ConvPass::backward_input:
      return ops::backward_input_call(dy_, w_, asked_.input_shape(), options({}));
    case ops::ConvPass::backward_weight:
      break;
  }
  return ops::backward_weight_call(dy_, x_, asked_.weight_shape(), options({}));
}

Tensor ConvWork::run(const std::string& implementation) const {
  switch (pass_) {
    case ops::ConvPass::forward:
      return ops::conv_forward(x_, w_, bias_, options(implementation));
    case ops::ConvPass::backward_input:
      return ops::conv_backward_input(dy_, w_, asked_.input_shape(), options(implementation));
    case ops::ConvPass::backward_weight:
      break;
  }
  return ops::conv_backward_weight(dy_, x_, asked_.weight_shape(), options(implementation));
}

std::vector<std::string> ConvWork::supporting() const {
  std::vector<std::string> names;
  for (const std::string& name : ops::conv_implementations(problem().device))
    if (name != "reference" && unsupported(name).empty()) names.push_back(name);
  if (names.empty()) names.emplace_back("reference");
  return names;
}

std::string ConvWork::unsupported(const std::string& implementation) const {
  const std::string base = implementation.substr(0, implementation.find(':'));
  std::string reason = fmt::format("there is no implementation \"{}\" on {}", base, problem().device);
  for (const ops::ConvImplementation* known : ops::all_conv_implementations()) {
    if (known->name() != base) continue;
    const std::string own = known->unsupported(problem(), pass_);
    if (own.empty()) return {};
    // One name may stand for several, each for a device: the reason of the one that is for this device
    // counts.
    if (known->runs_on(problem().device)) reason = own;
  }
  return reason;
}

std::vector<std::string> ConvWork::plans(const std::string& implementation) const {
  const auto found = ops::find_conv(problem(), pass_, implementation);
  if (found == nullptr) return {};
  return found->plans(ops::solved_problem(problem(), *found), pass_);
}

int64_t ConvWork::workspace_bytes(const std::string& implementation) const {
  const auto found = ops::find_conv(problem(), pass_, implementation);
  check<ValueError>(found != nullptr, "conv: there is no implementation \"{}\" for this problem",
                    implementation);
  return found->workspace_bytes(ops::solved_problem(problem(), *found), pass_);
}

std::string ConvWork::solved_as(const std::string& implementation) const {
  const auto found = ops::find_conv(problem(), pass_, implementation);
  return found == nullptr ? "" : ops::solved_problem(problem(), *found).describe();
}

std::string ConvWork::double_implementation() const {
  constexpr int64_t quick = 2'000'000'000;
  return problem().flops() <= quick ? "reference" : "unfold";
}

Tensor ConvWork::exact() const {
  ConvWork in_double = *this;
  for (Tensor* operand : {&in_double.x_, &in_double.w_, &in_double.dy_, &in_double.bias_})
    if (operand->defined()) *operand = ops::cast(ops::to_device(*operand, Device()), float64);
  in_double.asked_.dtype = float64;
  in_double.asked_.device = Device();
  return in_double.run(double_implementation());
}

double valid_flops(const ops::ConvProblem& p) {
  double pairs = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    int64_t in_this = 0;
    for (int64_t tap = 0; tap < p.kernel[d]; ++tap) {
      // Outputs o with 0 <= o * stride + start < input.
      const int64_t start = tap * p.dilation[d] - p.padding_low[d];
      const int64_t first = start >= 0 ? 0 : (-start + p.stride[d] - 1) / p.stride[d];
      const int64_t end = start >= p.input[d] ? 0 : (p.input[d] - 1 - start) / p.stride[d] + 1;
      in_this += std::max<int64_t>(0, std::min(end, p.output[d]) - first);
    }
    pairs *= static_cast<double>(in_this);
  }
  return 2 * static_cast<double>(p.batch) * static_cast<double>(p.out_channels) *
         static_cast<double>(p.group_in()) * pairs;
}

double least_bytes(const ops::ConvProblem& p) {
  const auto elements = static_cast<double>(p.batch * p.in_channels * p.input_pixels()) +
                        static_cast<double>(p.out_channels * p.depth()) +
                        static_cast<double>(p.batch * p.out_channels * p.output_pixels());
  return elements * static_cast<double>(size_of(p.dtype));
}

}  // namespace pleat::bench
