#include "pleat/bench/ask/patches.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "pleat/bench/ask/measure.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::patches {
namespace {

constexpr int64_t channels = 32, side = 4, filters_out = 64;

/// Numbers of patches, the last one that of the question.
std::vector<int64_t> scale(const AskOptions& options) {
  if (options.quick) return {40, 80, 160};
  return {1280, 2560, 5120, 10240, 20480};
}

int64_t dense_side(const AskOptions& options) { return options.quick ? 60 : 600; }

/// A way to compute it, with operands; in `policy` when it is timed.
struct Candidate {
  std::string way;
  Tensor x, filters;
  std::function<Tensor(const Tensor& x, const Tensor& filters)> compute;
  ConvPolicyOptions policy = {};
};

std::vector<Candidate> candidates(int64_t patches, bool every_way, Device device) {
  manual_seed(1);
  const Tensor x = randn({1, patches, channels, side, side}, {.device = device}).set_requires_grad();
  const Tensor filters =
      (randn({filters_out, channels, 3, 3}, {.device = device}) * 0.05).detach().set_requires_grad();
  std::vector<Candidate> all;
  for (const std::string& name : fast_implementations(device))
    all.push_back({"a batch, " + name, x, filters,
                   [name](const Tensor& a, const Tensor& b) { return as_batch(a, b, name); }});
  const auto batch = [](const Tensor& a, const Tensor& b) { return as_batch(a, b); };
  if (every_way) all.push_back({"a batch, tuned", x, filters, batch, {.benchmark = true}});
  if (every_way && device.is_cuda())  // elsewhere implementations have no plans to choose from
    for (const std::string& name : fast_implementations(device))
      all.push_back({"a batch, " + name + ", tuned",
                     x,
                     filters,
                     [name](const Tensor& a, const Tensor& b) { return as_batch(a, b, name); },
                     {.benchmark = true}});
  all.push_back({"(1, 3, 3) conv3d", x, filters, as_frames});
  all.push_back({"unfold and product", x, filters, by_unfold});
  return all;
}

Candidate dense(int64_t size, Device device) {
  manual_seed(2);
  const Tensor x = randn({1, channels, size, size}, {.device = device}).set_requires_grad();
  const Tensor filters =
      (randn({filters_out, channels, 3, 3}, {.device = device}) * 0.05).detach().set_requires_grad();
  return {dense_way, x, filters,
          [](const Tensor& a, const Tensor& b) { return conv2d(a, b, {.padding = 1}); }};
}

/// Times forward and backward of the candidates in turns.
std::vector<Row> time_all(const AskOptions& options, const std::vector<Candidate>& all, int64_t patches,
                          Answer& answer) {
  std::vector<Row> rows;
  std::vector<Way> ways;
  for (const Candidate& c : all) {
    const bool is_dense = c.way == dense_way;
    const std::string what = is_dense ? c.way : fmt::format("{} patches, {}", patches, c.way);
    const auto forward = [c] {
      const ConvPolicy policy(c.policy);
      return c.compute(c.x, c.filters);
    };
    const Tensor y = forward();
    const Tensor dy = ops::to_format(randn(y.shape(), {.device = options.device}), y.memory_format());
    const auto backward = [c, y, dy] {  // under the policy of its forward
      (void)grad({y}, {c.x, c.filters}, {dy}, {.retain_graph = true});
    };
    rows.push_back({c.way, is_dense ? 0 : patches, y.numel()});
    const bool tuned = c.policy.benchmark;
    ways.push_back({what + ", forward", [forward] { (void)no_grad(forward); },
                    tuned ? std::function<void()>([forward] { (void)forward(); }) : nullptr});
    ways.push_back({what + ", backward", backward, tuned ? std::function<void()>(backward) : nullptr});
  }
  time_in_turns(options, ways, answer);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].forward = time_of(answer, ways[2 * i].what);
    rows[i].backward = time_of(answer, ways[2 * i + 1].what);
  }
  return rows;
}

/// Seconds for a million results.
double cost(const Row& row) { return 1e6 * row.both().median / static_cast<double>(row.outputs); }

std::vector<Table> tables(const std::vector<Row>& rows, int64_t largest) {
  Table ways{fmt::format("{} patches", largest),
             {"", "forward", "backward", "both", "both, for a million results"},
             {}};
  Table scaling{"Forward and backward over the number of patches", {""}, {}};
  std::set<int64_t> numbers;
  for (const Row& row : rows) {
    if (row.patches == largest || row.patches == 0)
      ways.rows.push_back({row.way, text(row.forward), text(row.backward), text(row.both()),
                           benchmark::format_time(cost(row), 3)});
    if (row.patches > 0) numbers.insert(row.patches);
  }
  for (const int64_t n : numbers) scaling.columns.push_back(fmt::format("{}", n));
  for (const Row& row : rows) {
    if (row.patches != *numbers.begin()) continue;
    std::vector<std::string> cells{row.way};
    for (const int64_t n : numbers)
      for (const Row& other : rows)
        if (other.way == row.way && other.patches == n) cells.push_back(text(other.both()));
    scaling.rows.push_back(cells);
  }
  return {ways, scaling};
}

plot::LineChart chart(const std::vector<Row>& rows, Device device) {
  plot::LineChart chart{.title = fmt::format("N patches of {}x{}x{}, {} filters of 3x3: forward and backward",
                                             channels, side, side, filters_out),
                        .subtitle = describe_machine(device, 0),
                        .x_axis = "elements of the result",
                        .y_axis = "time [ms]"};
  for (const Row& row : rows)
    if (row.patches > 0 || row.way == dense_way)
      add_point(chart, row.way, static_cast<double>(row.outputs), row.both());
  return chart;
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
  const Tensor columns = unfold(flatten(x, 0, 1), {.kernel_size = {3, 3}, .padding = 1});  // [B N, C 9, H W]
  const Tensor y = matmul(flatten(filters, 1), columns);
  return reshape(y, {x.size(0), x.size(1), filters.size(0), x.size(3), x.size(4)});
}

std::vector<std::string> conclude(const std::vector<Row>& rows) {
  std::vector<std::string> sentences;
  int64_t largest = 0, smallest = 0;
  for (const Row& row : rows) {
    largest = std::max(largest, row.patches);
    if (row.patches > 0) smallest = smallest == 0 ? row.patches : std::min(smallest, row.patches);
  }
  const auto find = [&](const std::string& way, int64_t patches) -> const Row* {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const Row& row) { return row.way == way && row.patches == patches; });
    return found == rows.end() ? nullptr : &*found;
  };
  const Row* best = nullptr;
  for (const Row& row : rows)
    if (row.patches == largest && (best == nullptr || row.both().median < best->both().median)) best = &row;
  sentences.push_back(fmt::format("The fastest way for {} patches, forward and backward, is \"{}\" ({}).",
                                  largest, best->way, benchmark::format_time(best->both().median, 3)));
  for (const char* way : {"(1, 3, 3) conv3d", "unfold and product"}) {
    const Row* row = find(way, largest);
    if (row != nullptr && row != best)
      sentences.push_back("Forward and backward, " + comparison(way, row->both(), best->way, best->both()) +
                          '.');
  }
  if (const Row* image = find(dense_way, 0)) {
    const double factor = cost(*best) / cost(*image);
    sentences.push_back(fmt::format(
        "For a million results, patches cost {} and one dense image of {} as many elements {}: {}.",
        benchmark::format_time(cost(*best), 3),
        factor_text(static_cast<double>(image->outputs) / static_cast<double>(best->outputs)),
        benchmark::format_time(cost(*image), 3),
        factor > 1.1   ? "small patches cost " + factor_text(factor) + " times as much"
        : factor < 0.9 ? "small patches cost only " + factor_text(factor) + " of that"
                       : "it makes no difference that the image is in pieces"));
  }
  const Row* small = find(best->way, smallest);
  if (small != nullptr && smallest < largest) {
    const double growth = best->both().median / small->both().median;
    const double work = static_cast<double>(largest) / static_cast<double>(smallest);
    sentences.push_back(fmt::format("From {} to {} patches, {} times the work, its time grows {}-fold: {}.",
                                    smallest, largest, factor_text(work), factor_text(growth),
                                    growth > 1.2 * work   ? "a patch costs more among many"
                                    : growth < work / 1.2 ? "a patch costs more among few"
                                                          : "in proportion"));
  }
  int64_t previous = 0;  // the number before the largest
  for (const Row& row : rows)
    if (row.patches < largest) previous = std::max(previous, row.patches);
  for (const Row& row : rows) {
    const Row* before = find(row.way, previous);
    if (row.patches != largest || previous == 0 || before == nullptr) continue;
    const double growth = row.both().median / before->both().median;
    if (growth > 1.5 * static_cast<double>(largest) / static_cast<double>(previous))
      sentences.push_back(
          fmt::format("From {} to {} patches, the time of \"{}\" grows {}-fold, far out of proportion.",
                      previous, largest, row.way, factor_text(growth)));
  }
  return sentences;
}

Answer ask(const AskOptions& options) {
  const std::vector<int64_t> numbers = scale(options);
  const int64_t image = dense_side(options);
  Answer answer{
      .setup = {fmt::format("x [1, N, {}, {}, {}], {} filters of 3x3, padding 1, float32; the dense image is "
                            "[1, {}, {}, {}]. Backward is that of patches and filters.",
                            channels, side, side, filters_out, channels, image, image)}};
  if (options.quick) answer.setup.emplace_back(quick_note);
  std::vector<Row> rows;
  for (const int64_t n : numbers) {
    const bool last = n == numbers.back();
    std::vector<Candidate> all = candidates(n, last, options.device);
    if (last) all.push_back(dense(image, options.device));
    const std::vector<Row> more = time_all(options, all, n, answer);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  answer.tables = tables(rows, numbers.back());
  answer.plot = plot::svg(chart(rows, options.device));
  answer.conclusion = conclude(rows);
  return answer;
}

}  // namespace pleat::bench::ask::patches
