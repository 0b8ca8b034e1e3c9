#include <algorithm>
#include <functional>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/chart.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::patches {
namespace {

constexpr int64_t channels = 32, side = 4, filters_out = 64;
const std::string frames_way = "(1, 3, 3) conv3d", unfold_way = "unfold and product";

using Compute = std::function<Tensor(const Tensor& x, const Tensor& filters)>;

/// A way to compute it; in `policy` when it is timed.
struct Way {
  std::string name;
  Compute compute;
  ConvPolicyOptions policy = {};
};

/// Every way, or those that are compared over the number of patches.
std::vector<Way> ways_of(bool every, Device device) {
  const auto batch = [](const std::string& name) -> Compute {
    return [name](const Tensor& x, const Tensor& filters) { return as_batch(x, filters, name); };
  };
  std::vector<Way> ways;
  for (const std::string& name : fast_implementations(device))
    ways.push_back({"a batch, " + name, batch(name)});
  if (every) ways.push_back({"a batch, tuned", batch(""), {.benchmark = true}});
  if (every && device.is_cuda())  // elsewhere implementations have no plans to choose from
    for (const std::string& name : fast_implementations(device))
      ways.push_back({"a batch, " + name + ", tuned", batch(name), {.benchmark = true}});
  ways.push_back({frames_way, as_frames});
  ways.push_back({unfold_way, by_unfold});
  return ways;
}

/// Adds the work of both passes; returns the number of elements of the result.
int64_t add_work(std::vector<Work>& all, const std::string& problem, const Way& way, const Shape& input,
                 Device device) {
  manual_seed(1);
  const Tensor x = randn(input, {.device = device}).set_requires_grad();
  const Tensor filters =
      (randn({filters_out, channels, 3, 3}, {.device = device}) * 0.05).detach().set_requires_grad();
  const auto forward = [=] {
    const ConvPolicy policy(way.policy);
    return way.compute(x, filters);
  };
  const Tensor y = forward();
  const Tensor dy = gradient_for(y);
  const auto backward = [=] {  // under the policy of its forward
    (void)grad({y}, {x, filters}, {dy}, {.retain_graph = true});
  };
  const bool tuned = way.policy.benchmark;
  all.push_back({problem, way.name, "forward", [=] { (void)no_grad(forward); },
                 tuned ? std::function<void()>([=] { (void)forward(); }) : nullptr});
  all.push_back({problem, way.name, "backward", backward, tuned ? std::function<void()>(backward) : nullptr});
  return y.numel();
}

Time both(const Times& times, const std::string& problem, const std::string& way) {
  return sum(times.at(problem, way, "forward"), times.at(problem, way, "backward"));
}

/// Seconds for a million results.
double cost(const Time& time, int64_t outputs) { return 1e6 * time.median / static_cast<double>(outputs); }

std::string plot(const Times& times, const std::vector<Size>& sizes, Device device) {
  chart::LineChart chart{
      .title = fmt::format("N patches of {}x{}x{}, {} filters of 3x3: forward and backward", channels, side,
                           side, filters_out),
      .subtitle = describe_machine(device, 0),
      .x_axis = "elements of the result",
      .y_axis = "time [ms]",
      .log_x = true,
      .log_y = true};
  for (const Size& size : sizes)
    for (const std::string& way : times.ways(size.problem))
      chart.add(way, {static_cast<double>(size.outputs), 1e3 * both(times, size.problem, way).median});
  return chart::svg(chart);
}

Tensor patches_of(const Tensor& batch, const Tensor& like) {
  return reshape(batch, {like.size(0), like.size(1), batch.size(1), batch.size(2), batch.size(3)});
}

}  // namespace

Tensor as_batch(const Tensor& x, const Tensor& filters, const std::string& implementation) {
  return patches_of(conv2d(flatten(x, 0, 1), filters, {.padding = 1, .implementation = implementation}), x);
}

Tensor as_frames(const Tensor& x, const Tensor& filters) {
  const Tensor y = conv3d(transpose(x, 1, 2), unsqueeze(filters, 2), {.padding = {0, 1, 1}});
  return transpose(y, 1, 2);
}

Tensor by_unfold(const Tensor& x, const Tensor& filters) {
  return patches_of(batchnorm_after_unfold::conv_by_columns(flatten(x, 0, 1), filters, 1), x);
}

std::vector<std::string> conclude(const Times& times, const std::vector<Size>& sizes) {
  std::vector<Size> counts = sizes;
  std::erase_if(counts, [](const Size& size) { return size.patches == 0; });
  const Size &smallest = counts.front(), &largest = counts.back();
  const auto total = [&](const Size& size, const std::string& way) { return both(times, size.problem, way); };
  const auto measured = [&](const Size& size, const std::string& way) {
    return times.find(size.problem, way, "forward") != nullptr;
  };
  std::string best;
  for (const std::string& way : times.ways(largest.problem))
    if (best.empty() || total(largest, way).median < total(largest, best).median) best = way;
  const Time fastest = total(largest, best);
  std::vector<std::string> sentences{
      fmt::format("The fastest way for {}, forward and backward, is \"{}\" ({}).", largest.problem, best,
                  median_text(fastest))};
  for (const std::string& way : {frames_way, unfold_way})
    if (way != best && measured(largest, way))
      sentences.push_back("Forward and backward, " + comparison(way, total(largest, way), best, fastest) +
                          '.');
  if (sizes.back().patches == 0) {
    const Size& image = sizes.back();
    const double patch_cost = cost(fastest, largest.outputs);
    const double image_cost = cost(total(image, dense), image.outputs), factor = patch_cost / image_cost;
    sentences.push_back(fmt::format(
        "For a million results, patches cost {} and one dense image of {} as many elements {}: {}.",
        benchmark::format_time(patch_cost, 3),
        factor_text(static_cast<double>(image.outputs) / static_cast<double>(largest.outputs)),
        benchmark::format_time(image_cost, 3),
        factor > 1.1   ? "small patches cost " + factor_text(factor) + " times as much"
        : factor < 0.9 ? "small patches cost only " + factor_text(factor) + " of that"
                       : "it makes no difference that the image is in pieces"));
  }
  const auto work = [&](const Size& size) {
    return static_cast<double>(largest.patches) / static_cast<double>(size.patches);
  };
  if (counts.size() > 1 && measured(smallest, best)) {
    const double growth = fastest.median / total(smallest, best).median, more = work(smallest);
    sentences.push_back(fmt::format("From {} to {}, {} times the work, its time grows {}-fold: {}.",
                                    smallest.patches, largest.problem, factor_text(more), factor_text(growth),
                                    growth > 1.2 * more   ? "a patch costs more among many"
                                    : growth < more / 1.2 ? "a patch costs more among few"
                                                          : "in proportion"));
  }
  for (const std::string& way : times.ways(largest.problem)) {
    if (counts.size() < 2) break;
    const Size& before = counts[counts.size() - 2];
    if (!measured(before, way)) continue;
    const double growth = total(largest, way).median / total(before, way).median;
    if (growth > 1.5 * work(before))
      sentences.push_back(
          fmt::format("From {} to {}, the time of \"{}\" grows {}-fold, far out of proportion.",
                      before.patches, largest.problem, way, factor_text(growth)));
  }
  return sentences;
}

Answer ask(const AskOptions& options) {
  const int64_t image = options.quick ? 60 : 600;
  const std::vector<int64_t> numbers =  // the last one is that of the question
      options.quick ? std::vector<int64_t>{40, 80, 160}
                    : std::vector<int64_t>{1280, 2560, 5120, 10240, 20480};
  Answer answer{
      .setup = {fmt::format("x [1, N, {}, {}, {}], {} filters of 3x3, padding 1, float32; the dense image is "
                            "[1, {}, {}, {}]. Backward is that of patches and filters.",
                            channels, side, side, filters_out, channels, image, image)}};
  Times& times = answer.times;
  std::vector<Size> sizes;
  for (const int64_t n : numbers) {
    const bool last = n == numbers.back();
    sizes.push_back({fmt::format("{} patches", n), n, 0});
    std::vector<Work> all;
    for (const Way& way : ways_of(last, options.device))
      sizes.back().outputs =
          add_work(all, sizes.back().problem, way, {1, n, channels, side, side}, options.device);
    if (last)
      sizes.push_back(
          {dense, 0,
           add_work(all, dense,
                    {dense, [](const Tensor& x,
                               const Tensor& filters) { return conv2d(x, filters, {.padding = 1}); }},
                    {1, channels, image, image}, options.device)});
    times.measure(options, all);
  }

  const Size& largest = sizes[sizes.size() - 2];
  Table table{largest.problem, {"", "forward", "backward", "both", "both, for a million results"}, {}};
  for (const Size& size : {largest, sizes.back()})
    for (const std::string& way : times.ways(size.problem)) {
      const Time time = both(times, size.problem, way);
      table.rows.push_back({way, text(times.at(size.problem, way, "forward")),
                            text(times.at(size.problem, way, "backward")), text(time),
                            benchmark::format_time(cost(time, size.outputs), 3)});
    }
  std::vector<ColumnOf> columns;
  for (const int64_t n : numbers)
    columns.push_back({fmt::format("{}", n), [&times, n](const std::string& way) {
                         return text(both(times, fmt::format("{} patches", n), way));
                       }});
  answer.tables = {table, table_of("Forward and backward over the number of patches",
                                   times.ways(sizes.front().problem), columns)};
  answer.plot = plot(times, sizes, options.device);
  answer.conclusion = conclude(times, sizes);
  return answer;
}

}  // namespace pleat::bench::ask::patches
