#include <map>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 32, filters_out = 64;
const std::string dense = "one dense image";  ///< a way: as many pixels, about, in one piece
const std::string together = "forward and backward", per_million = "for a million results";  ///< passes

std::string problem_of(int64_t n, int64_t side) { return fmt::format("{0} patches of {1}x{1}", n, side); }

/// One call for each way; with `tuned`, each chooses the fastest plan by measurement.
Way batch_way(const Tensor& x, const Tensor& filters, const std::string& implementation, bool tuned) {
  const std::string name =
      "a batch" + (implementation.empty() ? "" : ", " + implementation) + (tuned ? ", tuned" : "");
  const auto compute = [=] {
    const ConvPolicy policy({.benchmark = tuned});  // of the backward pass, too
    return as_batch(x, filters, implementation);
  };
  return {name, compute, {x, filters}, tuned};
}

/// Those that are compared over the number of patches; with `tuned`, what tuning makes of them.
std::vector<Way> ways_of(const Tensor& x, const Tensor& filters, bool tuned) {
  std::vector<Way> ways;
  const Strings names = fast_implementations(flatten(x, 0, 1), filters, {.padding = 1});
  for (const std::string& name : names) ways.push_back(batch_way(x, filters, name, false));
  ways.push_back({"(1, 3, 3) conv3d", [=] { return as_frames(x, filters); }, {x, filters}});
  ways.push_back({"unfold and product", [=] { return by_unfold(x, filters); }, {x, filters}});
  if (tuned) ways.push_back(batch_way(x, filters, "", true));
  if (tuned && x.device().is_cuda())  // elsewhere few have plans to choose from
    for (const std::string& name : names) ways.push_back(batch_way(x, filters, name, true));
  return ways;
}

/// Those that take too long, or too much memory, for many patches.
std::vector<Way> ways_for_few(const Tensor& x, const Tensor& filters) {
  return {{"a plain loop", [=] { return by_loop(x, filters); }, {x, filters}},
          {"groups = N", [=] { return as_groups(x, filters); }, {x, filters}}};
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
  return patches_of(conv_by_product(flatten(x, 0, 1), filters, 1, false), x);
}

Tensor by_loop(const Tensor& x, const Tensor& filters) {
  std::vector<Tensor> results;
  for (int64_t n = 0; n < x.size(1); ++n) results.push_back(conv2d(select(x, 1, n), filters, {.padding = 1}));
  return stack(results, 1);
}

Tensor as_groups(const Tensor& x, const Tensor& filters) {
  const int64_t n = x.size(1);
  const Tensor y = conv2d(flatten(x, 1, 2), repeat(filters, {n, 1, 1, 1}), {.padding = 1, .groups = n});
  return reshape(y, {x.size(0), n, filters.size(0), x.size(3), x.size(4)});
}

Answer patches(const AskOptions& options) {
  const int64_t image = options.quick ? 60 : 600;
  const std::vector<int64_t> numbers =  // the last one is that of the question
      options.quick ? std::vector<int64_t>{40, 80, 160}
                    : std::vector<int64_t>{1280, 2560, 5120, 10240, 20480};
  Answer answer{
      .setup = {fmt::format("x [1, N, {}, H, H], {} filters of 3x3, padding 1, float32; the dense image is "
                            "[1, {}, {}, {}]. Backward is that of patches and filters.",
                            channels, filters_out, channels, image, image),
                "The first rows of the question's table, cuDNN off, on and benchmarked, are here an "
                "implementation each and \"tuned\"."}};
  const TensorOptions on{.device = options.device};
  Times& times = answer.times;
  manual_seed(1);
  const Tensor filters = (randn({filters_out, channels, 3, 3}, on) * 0.05).detach().set_requires_grad();
  const Tensor whole = randn({1, channels, image, image}, on).set_requires_grad();
  std::map<std::string, int64_t> pixels;  // of a problem
  const auto measure = [&](const std::vector<int64_t>& counts, int64_t side) {
    std::vector<Way> all;
    for (const int64_t n : counts) {
      pixels[problem_of(n, side)] = n * side * side;
      const Tensor x = randn({1, n, channels, side, side}, on).set_requires_grad();
      std::vector<Way> ways = ways_of(x, filters, n == counts.back());
      if (n == counts.back())
        ways.push_back({dense, [=] { return conv2d(whole, filters, {.padding = 1}); }, {whole, filters}});
      if (n == counts.front() && n != counts.back())
        for (Way& way : ways_for_few(x, filters)) ways.push_back(std::move(way));
      for (Way& way : of_problem(problem_of(n, side), std::move(ways))) all.push_back(std::move(way));
    }
    for (Record& record : times.measure(options, all, {forward, backward})) {
      const bool is_dense = record.label("way") == dense;
      const int64_t size = is_dense ? image * image : pixels.at(record.label("problem"));
      record.set_value("outputs", static_cast<double>(filters_out * size));
    }
  };
  constexpr int64_t small = 4, large = 8;
  const int64_t most = numbers.back(), as_many_pixels = most * small * small / (large * large);
  Strings small_problems;
  for (const int64_t n : numbers) small_problems.push_back(problem_of(n, small));
  measure(numbers, small);
  measure({as_many_pixels}, large);

  times.add_sum(together, {forward, backward});
  const Strings question{small_problems.back(), problem_of(as_many_pixels, large)};
  for (const std::string& problem : question)
    answer.notes.push_back(times.only("problem", {problem}).side_by_side(problem, "way", "pass"));
  answer.plot = time_lines({.title = fmt::format("N patches of {}x{}x{}, {} filters of 3x3: {}", channels,
                                                 small, small, filters_out, together),
                            .series = {"way"},
                            .x_value = "outputs",
                            .x_axis = "elements of the result"},
                           times.only("problem", small_problems).only("pass", {together}).records);
  for (Record record : times.only("pass", {together}).records) {
    record.time = scaled(*record.time, 1e6 / record.value("outputs").value());
    record.set_label("pass", per_million);
    times.records.push_back(record);
  }
  answer.conclusion = times.only("problem", {small_problems[0], question[0], question[1]})
                          .compare("problem", {per_million}, "way");
  for (std::string& sentence : times.compare("way", {per_million}, "problem"))
    answer.conclusion.push_back(std::move(sentence));
  return answer;
}

}  // namespace pleat::bench::ask
