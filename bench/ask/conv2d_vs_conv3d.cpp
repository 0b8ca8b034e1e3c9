#include <algorithm>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 2, filters = 2;
const std::string careless = "timed carelessly";        ///< a problem
const std::string summed = "forward, sum, backward()";  ///< a pass

/// How somebody measures who knows neither of first calls nor that a device works by itself: the backward of
/// conv2d and conv3d, one after the other, and what the host's clock says of each.
void time_carelessly(const AskOptions& options, const std::vector<Way>& ways, Times& times) {
  const auto add = [&](const std::string& how, const std::vector<std::size_t>& order, bool waits) {
    const auto clock = benchmark::device_clock(waits ? options.device : Device());
    std::vector<double> seconds[2];
    std::function<void()> run[2];
    for (const std::size_t way : order) run[way] = backward_of(ways[way].compute(), ways[way].inputs);
    if (!waits) run[0](), run[1]();
    for (int repeat = 0; repeat < (options.quick ? 3 : 9); ++repeat) {
      if (waits) empty_cache(options.device);  // as in a program that has just started
      for (const std::size_t way : order) {
        // Else the queue of the run before would count, too.
        if (options.device.is_cuda()) cuda::synchronize(options.device);
        clock->start();
        run[way]();
        seconds[way].push_back(clock->stop().wall);
      }
    }
    for (const std::size_t way : {0, 1}) times.add(careless, ways[way].name, how, time_of(seconds[way]));
  };
  add("no warm-up, conv2d first", {0, 1}, true);
  add("no warm-up, conv3d first", {1, 0}, true);
  add("host clock, not waiting for the device", {0, 1}, false);
}

/// What the careless table would make one believe.
std::string careless_sentence(const Times& times) {
  std::vector<double> ratios;
  for (const std::string& how : times.values("pass")) {
    const std::vector<Record> both = times.only("pass", {how}).records;
    ratios.push_back(both.at(1).time->median / both.at(0).time->median);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return fmt::format(
      "{}, the backward pass of conv3d seems to take {:.2f} to {:.2f} times as long as that of conv2d, by "
      "what ran first: this is not a property of either, which stands below.",
      careless, *low, *high);
}

/// As the question has it: only the weight's gradient, of the sum of the result, accumulated.
std::vector<Way> summed_up(std::vector<Way> ways) {
  for (Way& way : ways) {
    const Tensor w = way.inputs.at(1);
    way.inputs[0].set_requires_grad(false);
    way.compute = [compute = way.compute, w]() mutable {
      const Tensor y = compute();
      sum(y).backward();
      return y;
    };
  }
  return ways;
}

}  // namespace

Tensor frames_of(const Tensor& videos) {
  const Shape& s = videos.shape();
  return reshape(permute(videos, {0, 2, 1, 3, 4}), {s[0] * s[2], s[1], s[3], s[4]});
}

std::vector<Way> frames_and_videos(const Tensor& videos, const Tensor& w, const std::string& implementation) {
  using Conv = Tensor(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options);
  const auto way = [&](const char* name, Conv* conv, const Tensor& input, const Tensor& weight,
                       const Padding& padding) {
    const std::vector<Tensor> own{clone(input).set_requires_grad(), clone(weight).set_requires_grad()};
    const ConvOptions options{.padding = padding, .implementation = implementation};
    return Way{name, [=] { return conv(own[0], own[1], {}, options); }, own};
  };
  const Tensor inner = narrow(videos, 2, 1, videos.size(2) - 2);
  return {way("conv2d", conv2d, frames_of(videos), squeeze(w, 2), 1),
          way("conv3d", conv3d, videos, w, {0, 1, 1}), way("conv3d, not reduced", conv3d, inner, w, 1)};
}

Answer conv2d_vs_conv3d(const AskOptions& options) {
  manual_seed(1);
  const int64_t depth = options.quick ? 50 : 500, size = options.quick ? 12 : 64;
  const Tensor videos = randn({8, channels, depth, size, size}, {.device = options.device});
  const Tensor w = randn({filters, channels, 1, 3, 3}, {.device = options.device});
  std::vector<Way> ways = frames_and_videos(videos, w, "");
  Answer answer{
      .setup = {
          fmt::format("conv2d: {} with {} filters (3, 3); conv3d: {} with the same filters as (1, 3, 3); "
                      "padding 1, float32.",
                      to_string(ways[0].inputs[0].shape()), filters, to_string(videos.shape())),
          "\"Not reduced\": frames of padding at both ends keep the problem in three dimensions.",
          "\"" + summed + "\": a whole step as in the question; the input needs no gradient."}};
  if (options.device.is_cpu())
    answer.setup.emplace_back(
        "On a CPU a call returns when its result is there: there is nothing to wait for.");
  Times& times = answer.times;
  time_carelessly(options, ways, times);
  answer.conclusion.push_back(careless_sentence(times));
  const double difference =
      no_grad([&] { return relative_error(frames_of(ways[1].compute()), ways[0].compute()); });
  for (const std::string& name : fast_implementations(videos, w, {.padding = {0, 1, 1}})) {
    ways = frames_and_videos(videos, w, name);
    times.measure(options, of_problem(name + ", forward", ways), {forward});
    times.measure(options, of_problem(name + ", gradients of weight and input", ways), {backward});
    for (Way& way : ways) way.inputs = {way.inputs[1]};
    times.measure(options, of_problem(name + ", gradient of the weight alone", ways), {backward});
    times.measure(options,
                  of_problem(name + ", as in the question", summed_up(frames_and_videos(videos, w, name))),
                  {summed});
  }
  const Times careful = times.only("pass", {forward, backward, summed});
  answer.plot = time_bars(
      {.title = "conv2d, and the same as conv3d", .series = {"way"}, .groups = {"problem"}}, careful.records);
  for (std::string& sentence : careful.compare("problem", {backward, summed}, "way"))
    answer.conclusion.push_back(std::move(sentence));
  answer.conclusion.push_back(
      difference == 0 ? "conv2d and conv3d give the same results, bit for bit."
                      : fmt::format("conv2d and conv3d differ by {:.1e} (relative).", difference));
  return answer;
}

}  // namespace pleat::bench::ask
