#include <algorithm>
#include <chrono>
#include <functional>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/case.h"
#include "pleat/bench/conv_work.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::conv2d_vs_conv3d {
namespace {

using ops::ConvPass;

constexpr int64_t channels = 2, filters = 4;

struct Operands {
  Tensor videos, video_filters;  ///< [N, C, D, H, W] and [K, C, 1, 3, 3]
  Tensor frames, frame_filters;  ///< [N D, C, H, W] and [K, C, 3, 3]: the same numbers
  Tensor dy_videos, dy_frames;
  ConvOptions video_options{.padding = {0, 1, 1}};
  ConvOptions frame_options{.padding = 1};

  explicit Operands(const AskOptions& options) {
    manual_seed(1);
    const int64_t depth = options.quick ? 5 : 500, size = options.quick ? 24 : 64;
    videos = randn({8, channels, depth, size, size}, {.device = options.device});
    frames = frames_of(videos);
    video_filters = randn({filters, channels, 1, 3, 3}, {.device = options.device});
    frame_filters = reshape(video_filters, {filters, channels, 3, 3});
    dy_videos = randn({8, filters, depth, size, size}, {.device = options.device});
    dy_frames = frames_of(dy_videos);
  }
};

/// One pass by whatever means: as conv_pass takes its operands.
using Pass = std::function<Tensor(ConvPass pass, const Tensor& a, const Tensor& b, const Shape& shape)>;

Pass called(ConvOptions options, const std::string& implementation = {}) {
  options.implementation = implementation;
  return [options](ConvPass pass, const Tensor& a, const Tensor& b, const Shape& shape) {
    return conv_pass(pass, a, b, shape, options);
  };
}

/// A convolution's forward and backward as they would run in a network: dy in the format of the result.
struct Passes {
  std::function<void()> forward, backward;
};

Passes passes(const Pass& run, const Tensor& x, const Tensor& w, const Tensor& dy) {
  const Tensor gradient = ops::to_format(dy, run(ConvPass::forward, x, w, dy.shape()).memory_format());
  return {[=] { (void)run(ConvPass::forward, x, w, dy.shape()); },
          [=] {
            (void)run(ConvPass::backward_input, gradient, w, x.shape());
            (void)run(ConvPass::backward_weight, gradient, x, w.shape());
          }};
}

Passes passes_2d(const Operands& o, const std::string& implementation = {}) {
  return passes(called(o.frame_options, implementation), o.frames, o.frame_filters, o.dy_frames);
}

Passes passes_3d(const Operands& o, const std::string& implementation = {}) {
  return passes(called(o.video_options, implementation), o.videos, o.video_filters, o.dy_videos);
}

void time_properly(const AskOptions& options, const Operands& o, Times& times) {
  std::vector<Work> all;
  for (const std::string& name : fast_implementations(options.device)) {
    const auto add = [&](const std::string& way, const Passes& both) {
      all.push_back({name, way, "forward", both.forward});
      all.push_back({name, way, "backward", both.backward});
    };
    add("conv2d", passes_2d(o, name));
    add("conv3d", passes_3d(o, name));
    const Pass stated = [name, options = o.video_options](ConvPass pass, const Tensor& a, const Tensor& b,
                                                          const Shape& shape) {
      return unreduced_pass(pass, name, a, b, shape, options);
    };
    add(not_reduced, passes(stated, o.videos, o.video_filters, o.dy_videos));
  }
  times.measure(options, all);
}

/// How somebody measures who knows neither of first calls nor that a device works by itself.
void time_carelessly(const AskOptions& options, const Operands& o, Times& times) {
  const Device device = options.device;
  const auto wait = [&] {
    if (device.is_cuda()) cuda::synchronize(device);
  };
  const std::function<void()> backward[] = {passes_2d(o).backward, passes_3d(o).backward};
  /// Both, conv2d or conv3d first, and what the host's clock says of each.
  const auto add = [&](const std::string& how, std::size_t first, bool warm, bool waits) {
    std::vector<double> seconds[2];
    if (warm) backward[0](), backward[1]();
    for (int repeat = 0; repeat < (options.quick ? 3 : 9); ++repeat) {
      wait();
      if (!warm) empty_cache(device);  // as in a program that has just started
      for (const std::size_t which : {first, 1 - first}) {
        if (!waits) wait();  // else the queue of the run before would count, too
        const auto start = std::chrono::steady_clock::now();
        backward[which]();
        if (waits) wait();
        seconds[which].push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
    wait();
    times.add({careless, how, "conv2d", time_of(seconds[0])});
    times.add({careless, how, "conv3d", time_of(seconds[1])});
  };
  add("no warm-up, conv2d first", 0, false, true);
  add("no warm-up, conv3d first", 1, false, true);
  add(not_waiting, 0, true, false);
}

/// What the reduction to two dimensions does for a backward.
std::string reduction_text(const Time& stated, const Time& reduced) {
  const std::string factor = factor_text(stated.median / reduced.median);
  return verdict(
      stated, reduced,
      {"without the reduction to two dimensions it would take less time, only " + factor + " of it",
       "the reduction to two dimensions makes no difference to it",
       "what the reduction to two dimensions does for it is lost in the noise (ratio " + factor + ")",
       "without the reduction to two dimensions it would take " + factor + " times as long"});
}

std::string careless_sentence(const Times& times, const std::string& how, const std::string& implementation,
                              Device device) {
  const Time& claimed_2d = times.at(careless, how, "conv2d");
  const Time& conv2d = times.at(implementation, "conv2d", "backward");
  const double claimed = ratio(times.at(careless, how, "conv3d"), claimed_2d).value;
  const double right = ratio(times.at(implementation, "conv3d", "backward"), conv2d).value;
  const std::string claim = fmt::format("{}: conv3d / conv2d seems to be {} and is {}", how,
                                        factor_text(claimed), factor_text(right));
  if (how == not_waiting && device.is_cpu())
    return claim + "; on a CPU a call returns when its result is there, so there is nothing to wait for.";
  if (how == not_waiting)
    return fmt::format("{}; the clock says {} for conv2d where the device works for {}.", claim,
                       median_text(claimed_2d), median_text(conv2d));
  return claim + (std::max(claimed / right, right / claimed) > 1.1
                      ? ", a wrong answer by order and first calls alone."
                      : ", which is close enough here.");
}

}  // namespace

Tensor frames_of(const Tensor& videos) {
  const Shape& s = videos.shape();
  return reshape(permute(videos, {0, 2, 1, 3, 4}), {s[0] * s[2], s[1], s[3], s[4]});
}

Tensor unreduced_pass(ConvPass pass, const std::string& implementation, const Tensor& a, const Tensor& b,
                      const Shape& shape, const ConvOptions& options) {
  ops::ConvProblem problem = conv_call(pass, a, b, shape, options).problem;
  const auto chosen = ops::choose_conv("unreduced conv3d", problem, pass, implementation);
  problem.format = chosen->layout(problem) == ops::ConvLayout::nhwc ? MemoryFormat::channels_last
                                                                    : MemoryFormat::contiguous;
  problem.result_format.reset();
  const Tensor first = ops::to_format(a, problem.format), second = ops::to_format(b, problem.format);
  const Tensor result =
      empty(shape, {.dtype = problem.dtype, .device = problem.device, .format = problem.format});
  if (pass == ConvPass::forward)
    chosen->forward(problem, first, second, {}, result);
  else if (pass == ConvPass::backward_input)
    chosen->backward_input(problem, first, second, result);
  else
    chosen->backward_weight(problem, first, second, result);
  return result;
}

std::vector<std::string> conclude(const Times& times, double difference, Device device) {
  std::vector<std::string> sentences{
      difference == 0 ? "conv2d and conv3d give the same results, bit for bit."
                      : fmt::format("conv2d and conv3d differ by {:.1e} (relative).", difference)};
  std::string first;  // the default implementation
  for (const std::string& implementation : times.problems()) {
    if (implementation == careless) continue;
    if (first.empty()) first = implementation;
    const auto backward = [&](const std::string& way) { return times.at(implementation, way, "backward"); };
    sentences.push_back(fmt::format("{}, backward: {}; {}.", implementation,
                                    comparison("conv3d", backward("conv3d"), "conv2d", backward("conv2d")),
                                    reduction_text(backward(not_reduced), backward("conv3d"))));
  }
  for (const std::string& how : times.ways(careless))
    sentences.push_back(careless_sentence(times, how, first, device));
  return sentences;
}

Answer ask(const AskOptions& options) {
  const NoGrad guard;
  const Operands o(options);
  Answer answer{.setup = {fmt::format(
                    "conv2d: {} with {} filters (3, 3); conv3d: {} with the same filters as (1, 3, 3); "
                    "padding 1, float32. Backward is that of input and filters.",
                    to_string(o.frames.shape()), filters, to_string(o.videos.shape()))}};
  const Tensor y2 = ops::conv_forward(o.frames, o.frame_filters, {}, o.frame_options);
  const Tensor y3 = frames_of(ops::conv_forward(o.videos, o.video_filters, {}, o.video_options));
  Times& times = answer.times;
  time_carelessly(options, o, times);
  time_properly(options, o, times);

  std::vector<std::string> implementations = times.problems();
  std::erase(implementations, careless);
  answer.tables = {
      table("Timed as it should be", times.rows(implementations),
            {{"implementation", [](const Cell& row) { return row.problem; }},
             times.column("forward"),
             times.column("backward"),
             times.ratio_column("backward", "forward")}),
      table("Backward as careless timing gives it, default implementation", times.rows({careless}),
            {times.column("conv2d"), times.column("conv3d"), times.ratio_column("conv3d", "conv2d")})};
  answer.plot = bars("Backward of conv2d, and of the same as conv3d", options.device, times,
                     [](const Cell& cell) -> Place {
                       if (cell.problem == careless) return {{cell.way, cell.pass}};
                       if (cell.pass != "backward") return {};
                       return {{cell.problem, cell.way}};
                     });
  answer.conclusion = conclude(times, relative_error(y3, y2), options.device);
  return answer;
}

}  // namespace pleat::bench::ask::conv2d_vs_conv3d
