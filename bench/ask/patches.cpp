#include <algorithm>
#include <functional>
#include <map>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/examples/common/chart.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::patches {
namespace {

constexpr int64_t channels = 32, side = 4, filters_out = 64;
const std::vector<std::string> passes = {"forward", "backward"};
const std::string frames_way = "(1, 3, 3) conv3d", unfold_way = "unfold and product";

using Compute = std::function<Tensor(const Tensor& x, const Tensor& filters)>;

/// A way to compute it.
struct Way {
  std::string name;
  Compute compute;
  bool tuned = false;  ///< by the policy's benchmark
};

/// Every way, or those that are compared over the number of patches.
std::vector<Way> ways_of(bool every, Device device) {
  const auto batch = [](const std::string& name) -> Compute {
    return [name](const Tensor& x, const Tensor& filters) { return as_batch(x, filters, name); };
  };
  std::vector<Way> ways, tuned{{"a batch, tuned", batch(""), true}};
  for (const std::string& name : fast_implementations(device)) {
    ways.push_back({"a batch, " + name, batch(name)});
    if (device.is_cuda())  // elsewhere implementations have no plans to choose from
      tuned.push_back({"a batch, " + name + ", tuned", batch(name), true});
  }
  if (every) ways.insert(ways.end(), tuned.begin(), tuned.end());
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
    const ConvPolicy policy({.benchmark = way.tuned});
    return way.compute(x, filters);
  };
  const Tensor y = forward(), dy = gradient_for(y);
  const auto add = [&](const std::string& pass, std::function<void()> run, std::function<void()> tune) {
    all.push_back({problem, way.name, pass, std::move(run), way.tuned ? std::move(tune) : nullptr});
  };
  const auto backward = [=] {  // under the policy of its forward
    (void)grad({y}, {x, filters}, {dy}, {.retain_graph = true});
  };
  add(
      passes[0], [=] { (void)no_grad(forward); }, [=] { (void)forward(); });
  add(passes[1], backward, backward);
  return y.numel();
}

Time both(const Times& times, const std::string& problem, const std::string& way) {
  return times.total(problem, way, passes);
}

/// Seconds for a million results.
double cost(const Time& time, int64_t outputs) { return 1e6 * time.median / static_cast<double>(outputs); }

std::string problem_of(int64_t n) { return fmt::format("{} patches", n); }

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
    return times.find(size.problem, way, passes[0]) != nullptr;
  };
  const std::string best = times.fastest(largest.problem, passes);
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
  const Way one_image{
      dense, [](const Tensor& x, const Tensor& filters) { return conv2d(x, filters, {.padding = 1}); }};
  Times& times = answer.times;
  std::vector<Size> sizes;
  for (const int64_t n : numbers) {
    const bool last = n == numbers.back();
    sizes.push_back({problem_of(n), n, 0});
    std::vector<Work> all;
    for (const Way& way : ways_of(last, options.device))
      sizes.back().outputs =
          add_work(all, sizes.back().problem, way, {1, n, channels, side, side}, options.device);
    if (last)
      sizes.push_back(
          {dense, 0, add_work(all, dense, one_image, {1, channels, image, image}, options.device)});
    times.measure(options, all);
  }

  std::map<std::string, int64_t> outputs;
  for (const Size& size : sizes) outputs[size.problem] = size.outputs;
  std::vector<Column> over_numbers;
  for (const int64_t n : numbers)
    over_numbers.push_back({std::to_string(n), [&times, problem = problem_of(n)](const Cell& row) {
                              return text(both(times, problem, row.way));
                            }});
  const std::string largest = problem_of(numbers.back());
  answer.tables = {table(largest, times.rows({largest, dense}),
                         {times.column("forward"),
                          times.column("backward"),
                          times.column("both", passes),
                          {"both, for a million results",
                           [&](const Cell& row) {
                             const Time time = both(times, row.problem, row.way);
                             return benchmark::format_time(cost(time, outputs.at(row.problem)), 3);
                           }}}),
                   table("Forward and backward over the number of patches",
                         times.rows({sizes.front().problem}), over_numbers)};
  answer.plot = plot(times, sizes, options.device);
  answer.conclusion = conclude(times, sizes);
  return answer;
}

}  // namespace pleat::bench::ask::patches
