#include "pleat/ops/conv/frozen_conv.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pleat/core/base/precision.h"
#include "pleat/core/base/record_function.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/random/random.h"
#include "pleat/core/tensor/copy.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/elementwise/arithmetic.h"
#include "pleat/ops/shape/rearrange.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/ops/tune/candidates.h"

namespace pleat::ops {
namespace {

/// Elements of y, and of the addend, in their order in memory; y has no gaps.
template <class T>
void finish_all(const ResultFinish& finish, const Tensor& y) {
  const RowFinish<T> all(finish);
  constexpr int64_t grain = 1 << 14;
  if (all)
    parallel_for(0, y.numel(), grain, [&, to = y.data<T>()](int64_t begin, int64_t end) {
      all.run(to + begin, begin, end - begin);
    });
}

/// Milliseconds of so many runs. They take turns, so that each finds in the caches what others have left
/// there, as in a network: repeated by itself, one whose weights are larger would find them in a cache.
std::vector<double> times_in_turns(std::size_t count, const std::function<void(std::size_t)>& run) {
  using Clock = std::chrono::steady_clock;
  constexpr int least_rounds = 4, most_rounds = 40;
  constexpr double most_milliseconds = 20;
  constexpr double too_slow = 3;
  std::vector<double> times(count, std::numeric_limits<double>::infinity());
  double spent = 0, best = times[0];
  for (int round = -1; round < most_rounds && (round < least_rounds || spent < most_milliseconds); ++round)
    for (std::size_t i = 0; i < count; ++i) {
      if (round > 1 && times[i] > too_slow * best) continue;
      const auto start = Clock::now();
      run(i);
      const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (round < 0) continue;  // it allocates
      spent += took;
      times[i] = std::min(times[i], took);
      best = std::min(best, took);
    }
  return times;
}

}  // namespace

FrozenConv::Way::Way(const ConvCall& call, const Choice& chosen, SharedBlocks& shared)
    : pass(call.pass),
      implementation(call.implementation(chosen.implementation)),
      as(call.problem, *implementation),
      weight(as.weight(call.w, shared)),
      bias(as.bias(call.bias)),
      prepared(implementation->prepare(as.problem, call.pass, weight, shared)),
      choice(chosen) {
  if (choice.implementation.empty()) choice.implementation = implementation->name();
  if (prepared != nullptr) weight = {};  // which that holds, if it reads it
  if (pass != ConvPass::backward_input || !bias.defined()) return;
  if (prepared != nullptr) {
    // Of a simplified problem columns of pixels may be channels.
    bias = repeat(bias, {as.problem.in_channels / bias.numel()});
  } else {
    Shape kept(call.w.shape().size() - 1, 1);
    kept[0] = bias.numel();
    bias = reshape(bias, kept);
  }
}

Tensor FrozenConv::Way::run(const Tensor& x, const ResultFinish& finish, const ConvProblem& problem) const {
  std::optional<SerialScope> scope;
  if (choice.alone) scope.emplace();
  const bool forward = pass == ConvPass::forward;
  Tensor result = as.make(forward ? problem.output_shape() : problem.input_shape());
  ResultFinish own = finish;
  if (finish.addend.defined() &&
      (finish.addend.strides() != result.strides() || finish.addend.dtype() != result.dtype())) {
    own.addend = empty_like(result);
    copy_into(own.addend, finish.addend);
  }
  if (prepared != nullptr) {
    prepared->run(as.laid_out(x), bias, result, own);
    return cast(result, problem.dtype);
  }
  if (forward) {
    implementation->forward(as.problem, as.input(x), weight, bias, as.output(result));
  } else {
    implementation->backward_input(as.problem, as.output(x), weight, as.input(result));
    if (bias.defined()) result = result + bias;
  }
  if (as.problem.dtype == float64)
    finish_all<double>(own, result);
  else if (as.problem.dtype == bfloat16)
    finish_all<BFloat16>(own, result);
  else
    finish_all<float>(own, result);
  return cast(result, problem.dtype);
}

FrozenConv::FrozenConv(ConvCall call, const std::optional<Choice>& choice, SharedBlocks& shared) {
  call.problem.format = conv_format(call.problem.device, call.problem.dtype, call.problem.precision);
  op_ = call.op;
  problem_ = call.problem;
  if (choice || !call.requested.empty()) {
    way_ = std::make_shared<Way>(
        call, choice && !choice->implementation.empty() ? *choice : Choice{call.requested}, shared);
    return;
  }
  Generator generator(1);
  const Tensor noise =
      to_format(randn(call.pass == ConvPass::forward ? problem_.input_shape() : problem_.output_shape(),
                      {.dtype = problem_.dtype, .device = problem_.device}, generator),
                problem_.format);
  // What costs several times the least by its own estimate is not the fastest.
  constexpr double too_much = 4;
  constexpr double shared_at_least = 1e5;           // flops: less is done before another thread wakes
  std::vector<std::pair<std::string, double>> all;  // and what they cost
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : conv_candidates(call, "")) {
    all.emplace_back(candidate.name, call.implementation(candidate.name)->cost(problem_, call.pass));
    least = std::min(least, all.back().second);
  }
  std::vector<Way> ways;
  for (const auto& [name, cost] : all)
    if (cost <= too_much * least) ways.emplace_back(call, Choice{name}, shared);
  const RecordFunction range(op_, ".tune");
  double best = std::numeric_limits<double>::infinity();
  for (const bool alone : {true, false}) {
    if (!alone && flops() < shared_at_least) continue;
    for (Way& way : ways) way.choice.alone = alone;
    const std::vector<double> times =
        times_in_turns(ways.size(), [&](std::size_t i) { (void)ways[i].run(noise, {}, problem_); });
    const auto fastest = std::min_element(times.begin(), times.end());
    if (*fastest >= best) continue;
    best = *fastest;
    way_ = std::make_shared<const Way>(ways[static_cast<std::size_t>(fastest - times.begin())]);
  }
}

Tensor FrozenConv::run(const Tensor& x, const ResultFinish& finish) const {
  const RecordOp range(op_, x);
  range.details([&] { return RangeDetails{.implementation = implementation(), .flops = flops()}; });
  const PrecisionScope precision(problem_.precision);
  const Tensor y = way_->run(x, finish, problem_);
  return problem_.result_format ? to_format(y, *problem_.result_format) : y;
}

}  // namespace pleat::ops
