#include "pleat/bench/ask/conv2d_vs_conv3d.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "pleat/bench/ask/measure.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/machine.h"
#include "pleat/bench/relative_error.h"
#include "pleat/core/base/format.h"
#include "pleat/ops/conv/call.h"
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
    const int64_t depth = options.quick ? 5 : 500;
    const int64_t size = options.quick ? 24 : 64;
    videos = randn({8, channels, depth, size, size}, {.device = options.device});
    frames = frames_of(videos);
    video_filters = randn({filters, channels, 1, 3, 3}, {.device = options.device});
    frame_filters = reshape(video_filters, {filters, channels, 3, 3});
    dy_videos = randn({8, filters, depth, size, size}, {.device = options.device});
    dy_frames = frames_of(dy_videos);
  }
};

/// A convolution's forward and backward as they would run in a network: dy in the format of the result.
struct Passes {
  std::function<void()> forward, backward;
};

Passes passes(const Tensor& x, const Tensor& w, const Tensor& dy, ConvOptions options) {
  const MemoryFormat format = ops::conv_forward(x, w, {}, options).memory_format();
  const Tensor gradient = ops::to_format(dy, format);
  return {[=] { (void)ops::conv_forward(x, w, {}, options); },
          [=] {
            (void)ops::conv_backward_input(gradient, w, x.shape(), options);
            (void)ops::conv_backward_weight(gradient, x, w.shape(), options);
          }};
}

Passes unreduced_passes(const Operands& o, const std::string& implementation) {
  const auto run = [implementation, options = o.video_options](ConvPass pass, const Tensor& a,
                                                               const Tensor& b, const Shape& shape) {
    return unreduced_pass(pass, implementation, a, b, shape, options);
  };
  const Tensor x = o.videos, w = o.video_filters;
  const MemoryFormat format = run(ConvPass::forward, x, w, o.dy_videos.shape()).memory_format();
  const Tensor dy = ops::to_format(o.dy_videos, format);
  return {[=] { (void)run(ConvPass::forward, x, w, dy.shape()); },
          [=] {
            (void)run(ConvPass::backward_input, dy, w, x.shape());
            (void)run(ConvPass::backward_weight, dy, x, w.shape());
          }};
}

ConvOptions with(ConvOptions options, const std::string& implementation) {
  options.implementation = implementation;
  return options;
}

std::vector<Row> time_all(const AskOptions& options, const Operands& o, Answer& answer) {
  std::vector<Row> rows;
  std::vector<Way> ways;
  for (const std::string& name : fast_implementations(options.device)) {
    const auto add = [&](const char* way, const Passes& both) {
      rows.push_back({name, way});
      ways.push_back({fmt::format("{}, {}, forward", way, name), both.forward});
      ways.push_back({fmt::format("{}, {}, backward", way, name), both.backward});
    };
    add("conv2d", passes(o.frames, o.frame_filters, o.dy_frames, with(o.frame_options, name)));
    add("conv3d", passes(o.videos, o.video_filters, o.dy_videos, with(o.video_options, name)));
    add("conv3d, not reduced", unreduced_passes(o, name));
  }
  time_in_turns(options, ways, answer);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].forward = time_of(answer, ways[2 * i].what);
    rows[i].backward = time_of(answer, ways[2 * i + 1].what);
  }
  return rows;
}

/// Reads the clock, runs, reads the clock. Nobody waits for a device.
double host_seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double careful_seconds(const std::function<void()>& run, Device device) {
  return host_seconds([&] {
    run();
    if (device.is_cuda()) cuda::synchronize(device);
  });
}

/// The time of the first backward of each, as a program sees it that has just started: no memory is cached.
NaiveRow without_warm_up(const Passes& conv2d, const Passes& conv3d, bool conv2d_first, int repeats,
                         Device device) {
  std::vector<double> times2, times3;
  for (int i = 0; i < repeats; ++i) {
    if (device.is_cuda()) cuda::synchronize(device);
    empty_cache(device);
    if (conv2d_first) times2.push_back(careful_seconds(conv2d.backward, device));
    times3.push_back(careful_seconds(conv3d.backward, device));
    if (!conv2d_first) times2.push_back(careful_seconds(conv2d.backward, device));
  }
  return {fmt::format("no warm-up, {} first", conv2d_first ? "conv2d" : "conv3d"), true, time_of(times2),
          time_of(times3)};
}

NaiveRow without_waiting(const Passes& conv2d, const Passes& conv3d, int repeats, Device device) {
  std::vector<double> times2, times3;
  conv2d.backward();
  conv3d.backward();
  for (int i = 0; i < repeats; ++i) {
    if (device.is_cuda()) cuda::synchronize(device);  // else the queue of the run before would count, too
    times2.push_back(host_seconds(conv2d.backward));
    if (device.is_cuda()) cuda::synchronize(device);
    times3.push_back(host_seconds(conv3d.backward));
  }
  if (device.is_cuda()) cuda::synchronize(device);
  return {"host clock, not waiting for the device", false, time_of(times2), time_of(times3)};
}

std::vector<NaiveRow> time_naively(const AskOptions& options, const Operands& o, Answer& answer) {
  const Passes conv2d = passes(o.frames, o.frame_filters, o.dy_frames, o.frame_options);
  const Passes conv3d = passes(o.videos, o.video_filters, o.dy_videos, o.video_options);
  const int repeats = options.quick ? 3 : 9;
  std::vector<NaiveRow> rows{without_warm_up(conv2d, conv3d, true, repeats, options.device),
                             without_warm_up(conv2d, conv3d, false, repeats, options.device),
                             without_waiting(conv2d, conv3d, repeats, options.device)};
  for (const NaiveRow& row : rows) {
    answer.times.push_back({"naive, " + row.how + ", conv2d backward", row.conv2d});
    answer.times.push_back({"naive, " + row.how + ", conv3d backward", row.conv3d});
  }
  return rows;
}

Agreement agreement(const Operands& o) {
  const Tensor y2 = ops::conv_forward(o.frames, o.frame_filters, {}, o.frame_options);
  const Tensor y3 = frames_of(ops::conv_forward(o.videos, o.video_filters, {}, o.video_options));
  const double difference = relative_error(y3, y2);
  return {difference == 0, difference};
}

std::vector<Table> tables(const std::vector<Row>& rows, const std::vector<NaiveRow>& naive) {
  Table right{
      "Timed as it should be", {"", "implementation", "forward", "backward", "backward / forward"}, {}};
  for (const Row& row : rows)
    right.rows.push_back({row.way, row.implementation, text(row.forward), text(row.backward),
                          factor_text(row.backward.median / row.forward.median)});
  Table wrong{"Backward as careless timing gives it, default implementation",
              {"", "conv2d", "conv3d", "conv3d / conv2d"},
              {}};
  for (const NaiveRow& row : naive)
    wrong.rows.push_back(
        {row.how, text(row.conv2d), text(row.conv3d), factor_text(row.conv3d.median / row.conv2d.median)});
  return {right, wrong};
}

plot::BarChart chart(const std::vector<Row>& rows, const std::vector<NaiveRow>& naive, Device device) {
  plot::BarChart chart{.title = "Backward of conv2d, and of the same as conv3d",
                       .subtitle = describe_machine(device, 0),
                       .axis = "time [ms]"};
  for (const Row& row : rows) add_bar(chart, row.implementation, row.way, row.backward);
  for (const NaiveRow& row : naive) {
    add_bar(chart, row.how, "conv2d", row.conv2d);
    add_bar(chart, row.how, "conv3d", row.conv3d);
  }
  return chart;
}

const Row& find(const std::vector<Row>& rows, const std::string& implementation, const std::string& way) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.implementation == implementation && row.way == way;
  });
  check<ValueError>(found != rows.end(), "ask: there is no row \"{}\" of {}", way, implementation);
  return *found;
}

/// What the reduction to two dimensions does for a backward.
std::string reduction_words(const Row& stated, const Row& reduced) {
  const std::string factor = factor_text(stated.backward.median / reduced.backward.median);
  switch (relate(stated.backward, reduced.backward)) {
    case Relation::longer:
      return "without the reduction to two dimensions it would take " + factor + " times as long";
    case Relation::shorter:
      return "without the reduction to two dimensions it would take less time, only " + factor + " of it";
    case Relation::level:
      return "the reduction to two dimensions makes no difference to it";
    case Relation::unclear:
      break;
  }
  return "what the reduction to two dimensions does for it is lost in the noise (ratio " + factor + ")";
}

std::string naive_sentence(const NaiveRow& row, const Row& conv2d, const Row& conv3d, Device device) {
  const double claimed = row.conv3d.median / row.conv2d.median;
  const double right = conv3d.backward.median / conv2d.backward.median;
  const double off = std::max(claimed / right, right / claimed);
  const std::string claim = fmt::format("{}: conv3d / conv2d seems to be {} and is {}", row.how,
                                        factor_text(claimed), factor_text(right));
  if (!row.synchronised && device.is_cpu())
    return claim + "; on a CPU a call returns when its result is there, so there is nothing to wait for.";
  if (!row.synchronised)
    return fmt::format("{}; the clock says {} for conv2d where the device works for {}.", claim,
                       benchmark::format_time(row.conv2d.median, 3),
                       benchmark::format_time(conv2d.backward.median, 3));
  return fmt::format(
      "{}{}.", claim,
      off > 1.1 ? ", a wrong answer by order and first calls alone" : ", which is close enough here");
}

}  // namespace

Tensor frames_of(const Tensor& videos) {
  const Shape& s = videos.shape();
  return reshape(permute(videos, {0, 2, 1, 3, 4}), {s[0] * s[2], s[1], s[3], s[4]});
}

Tensor unreduced_pass(ConvPass pass, const std::string& implementation, const Tensor& a, const Tensor& b,
                      const Shape& shape, const ConvOptions& options) {
  const ops::ConvCall call = pass == ConvPass::forward ? ops::forward_call(a, b, {}, options)
                             : pass == ConvPass::backward_input
                                 ? ops::backward_input_call(a, b, shape, options)
                                 : ops::backward_weight_call(a, b, shape, options);
  const auto chosen = ops::choose_conv("unreduced conv3d", call.problem, pass, implementation);
  ops::ConvProblem problem = call.problem;
  problem.format = chosen->layout(problem) == ops::ConvLayout::rows ? MemoryFormat::channels_last
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

std::vector<std::string> conclude(const std::vector<Row>& rows, const std::vector<NaiveRow>& naive,
                                  const Agreement& agreement, Device device) {
  std::vector<std::string> sentences;
  sentences.push_back(agreement.equal ? "conv2d and conv3d give the same results, bit for bit."
                                      : fmt::format("conv2d and conv3d differ by {} (relative).",
                                                    error_text(agreement.difference)));
  for (const Row& conv3d : rows) {
    if (conv3d.way != "conv3d") continue;
    const Row& conv2d = find(rows, conv3d.implementation, "conv2d");
    const Row& stated = find(rows, conv3d.implementation, "conv3d, not reduced");
    sentences.push_back(fmt::format("{}, backward: {}; {}.", conv3d.implementation,
                                    comparison("conv3d", conv3d.backward, "conv2d", conv2d.backward),
                                    reduction_words(stated, conv3d)));
  }
  const Row& conv2d = find(rows, rows.front().implementation, "conv2d");
  const Row& conv3d = find(rows, rows.front().implementation, "conv3d");
  for (const NaiveRow& row : naive) sentences.push_back(naive_sentence(row, conv2d, conv3d, device));
  return sentences;
}

Answer ask(const AskOptions& options) {
  const NoGrad guard;
  const Operands o(options);
  Answer answer{.setup = {fmt::format(
                    "conv2d: {} with {} filters (3, 3); conv3d: {} with the same filters as (1, 3, 3); "
                    "padding 1, float32. Backward is that of input and filters.",
                    to_string(o.frames.shape()), filters, to_string(o.videos.shape()))}};
  if (options.quick) answer.setup.emplace_back(quick_note);
  const Agreement same = agreement(o);
  const std::vector<NaiveRow> naive = time_naively(options, o, answer);
  const std::vector<Row> rows = time_all(options, o, answer);
  answer.tables = tables(rows, naive);
  answer.plot = plot::svg(chart(rows, naive, options.device));
  answer.conclusion = conclude(rows, naive, same, options.device);
  return answer;
}

}  // namespace pleat::bench::ask::conv2d_vs_conv3d
