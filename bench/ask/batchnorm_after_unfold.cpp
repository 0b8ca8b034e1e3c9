#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/bench/progress.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 3, filters = 16, side = 32, layer_padding = 0, result_side = side - 2;
const std::string alone = "batch norm in evaluation", in_training = "batch norm in training",
                  in_network = "batch norm inside the network in evaluation";  ///< ends of problems
const std::string kernel_time = "kernel time";                                 ///< a pass
const std::string columns_by_hand = "by hand: filters times columns",
                  windows_by_hand = "by hand: windows times filters";

/// The convolution of the question, and the batch norm behind it.
struct Layer {
  Tensor x, w;
  Tensor scale, shift, mean, variance;

  explicit Layer(int64_t batch, Device device) {
    const TensorOptions on{.device = device};
    manual_seed(1);
    x = randn({batch, channels, side, side}, on);
    w = randn({filters, channels, 3, 3}, on) * 0.2;
    scale = ones({filters}, on).set_requires_grad();
    shift = zeros({filters}, on).set_requires_grad();
    mean = zeros({filters}, on);
    variance = ones({filters}, on);
  }

  Tensor norm(const Tensor& y, bool training) const {
    return batch_norm(y, scale, shift, mean, variance, {.training = training});
  }

  /// The ways to convolve; their results differ in nothing but the memory format, which stands in brackets.
  std::vector<Way> convolutions() const {
    std::vector<Way> ways;
    ConvOptions options{.padding = layer_padding};
    for (const char* asked_for : {"", ", asked for contiguous"}) {
      for (const std::string& name : fast_implementations(x, w, options)) {
        options.implementation = name;
        ways.push_back({name + asked_for, [this, options] { return conv2d(x, w, options); }});
      }
      options.format = MemoryFormat::contiguous;
    }
    ways.push_back({columns_by_hand, [this] { return conv_by_product(x, w, layer_padding, false); }});
    ways.push_back({windows_by_hand, [this] { return conv_by_product(x, w, layer_padding, true); }});
    for (Way& way : ways) way.name += fmt::format(" ({})", name(no_grad(way.compute).memory_format()));
    return ways;
  }
};

/// Seconds of a batch norm in a profile: of its kernels on a GPU, of itself on a CPU.
double norm_seconds(const profile::Profile& profile, Device device) {
  const profile::KeyAverage row = profile.key_averages().at("batch_norm");
  return 1e-9 * static_cast<double>(device.is_cuda() ? row.cuda : row.cpu) / static_cast<double>(row.calls);
}

/// Profiles convolution and batch norm in evaluation, ten forward passes of each way in turns, round by
/// round. Adds the time of a batch norm. Returns the ten longest rows of the first round of those by hand.
Strings profile_network(const AskOptions& options, const Layer& layer, const std::string& problem,
                        const std::vector<Way>& convolutions, Times& times) {
  constexpr int forwards = 10;
  const NoGrad guard;
  Strings profiles;
  std::vector<benchmark::Measurement> measured(convolutions.size());
  const auto clock = benchmark::device_clock(options.device);
  const auto profile_round = [&] {
    for (std::size_t i = 0; i < convolutions.size(); ++i) {
      clock->start();
      profile::Profiler profiler{{.with_modules = false}};
      for (int run = 0; run < forwards; ++run) (void)layer.norm(convolutions[i].compute(), false);
      profiler.stop();
      measured[i].wall_times.push_back(clock->stop().wall);
      const profile::Profile& profile = profiler.profile();
      measured[i].times.push_back(norm_seconds(profile, options.device));
      if (profiles.size() == 2 || !convolutions[i].name.starts_with("by hand")) continue;
      profiles.push_back(fmt::format(
          "Ten forward passes in evaluation, {}{}\n{}", problem, convolutions[i].name,
          profile.key_averages({.group_by = profile::GroupBy::implementation | profile::GroupBy::format})
              .table({.row_limit = 10})));
    }
  };
  profile_round();  // allocates, and is not counted
  profiles.clear();
  for (benchmark::Measurement& one : measured) one = {};
  const auto bar = progress_bar(problem + in_network);
  do
    for (int64_t round = 0; round < options.timer.min_blocks; ++round) {
      profile_round();
      bar(static_cast<double>(round + 1) / static_cast<double>(options.timer.min_blocks));
    }
  while (wants_more(measured, options.timer));
  for (std::size_t i = 0; i < convolutions.size(); ++i)
    times.add(problem + in_network, convolutions[i].name, kernel_time, time_of(measured[i].times));
  return profiles;
}

/// Adds what is measured with a batch of that size; the problems begin with the text that is returned.
std::string measure_batch(const AskOptions& options, int64_t batch, Answer& answer) {
  const Layer layer(batch, options.device);
  const std::string problem = fmt::format("batch {}, ", batch);
  const std::vector<Way> convolutions = layer.convolutions();
  std::vector<Way> eval, training;
  for (const Way& convolution : convolutions) {
    const Tensor y = no_grad(convolution.compute).set_requires_grad();
    eval.push_back({convolution.name, [=, &layer] { return layer.norm(y, false); }});
    training.push_back(
        {convolution.name, [=, &layer] { return layer.norm(y, true); }, {y, layer.scale, layer.shift}});
  }
  Times& times = answer.times;
  times.measure(options, of_problem(problem + "convolution", convolutions), {forward});
  times.measure(options, of_problem(problem + alone, eval), {forward});
  for (std::string& profile : profile_network(options, layer, problem, convolutions, times))
    answer.notes.push_back(std::move(profile));
  times.measure(options, of_problem(problem + in_training, training), {forward, backward});
  return problem;
}

}  // namespace

Tensor conv_by_product(const Tensor& x, const Tensor& w, int64_t padding, bool windows_first) {
  const Tensor columns = unfold(x, {.kernel_size = {w.size(2), w.size(3)}, .padding = padding});
  const Tensor rows = flatten(w, 1);
  const Tensor product = windows_first
                             ? transpose(matmul(transpose(columns, 1, 2), transpose(rows, 0, 1)), 1, 2)
                             : matmul(rows, columns);  // [N, K, L]
  return reshape(product, {x.size(0), w.size(0), x.size(2) + 2 * padding - w.size(2) + 1,
                           x.size(3) + 2 * padding - w.size(3) + 1});
}

Answer batchnorm_after_unfold(const AskOptions& options) {
  Answer answer{
      .setup = {fmt::format(
          "Conv2d {} -> {}, 3x3, padding {}, no bias; BatchNorm2d {}; input [N, {}, {}, {}], "
          "float32: the result is {} x {}. Batch norm is timed on the convolution's result in "
          "the format that it has, which stands in brackets: alone, where a cache may still hold "
          "its input, and by the profiler inside of the network.",
          channels, filters, layer_padding, filters, channels, side, side, result_side, result_side)}};
  std::vector<int64_t> batches{8, 32};
  // That of the question, and one whose result no cache holds.
  if (!options.quick) batches = {128, options.device.is_cuda() ? 8192 : 2048};
  Strings side_by_side;
  Times norms;  // of the last batch in the end: its chart
  for (const int64_t batch : batches) {
    const std::string problem = measure_batch(options, batch, answer);
    side_by_side.push_back(
        answer.times.only("problem", {problem + alone, problem + in_network})
            .side_by_side(problem + alone + ": " + forward + " alone, " + kernel_time + " in the network",
                          "way", "pass"));
    norms = answer.times.only("problem", {problem + alone, problem + in_network, problem + in_training});
    for (std::string& sentence : norms.compare("problem", {forward, kernel_time, backward}, "way"))
      answer.conclusion.push_back(std::move(sentence));
  }
  answer.notes.insert(answer.notes.begin(), side_by_side.begin(), side_by_side.end());
  answer.plot = time_bars({.title = fmt::format("Batch norm of [{}, {}, {}, {}]", batches.back(), filters,
                                                result_side, result_side),
                           .series = {"way"},
                           .groups = {"problem", "pass"}},
                          norms.records);
  return answer;
}

}  // namespace pleat::bench::ask
