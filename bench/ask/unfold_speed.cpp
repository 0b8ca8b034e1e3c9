#include <algorithm>

#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/bench/report.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 10, height = 50, filters_out = 15, kernel = 3, margin = 1;

std::string problem_of(int64_t batch) { return fmt::format("batch {}", batch); }

void measure_batch(const AskOptions& options, int64_t batch, Times& times) {
  const TensorOptions on{.device = options.device};
  manual_seed(1);
  const Tensor x = randn({batch, channels, height, height}, on).set_requires_grad();
  const Tensor filters =
      (randn({filters_out, channels * kernel * kernel}, on) * 0.1).detach().set_requires_grad();
  std::vector<Way> ways;
  const auto as_kernels = [=] { return reshape(filters, {filters_out, channels, kernel, kernel}); };
  for (const std::string& name : fast_implementations(x, as_kernels(), {.padding = margin}))
    ways.push_back({"conv2d, " + name,
                    [=] { return conv2d(x, as_kernels(), {.padding = margin, .implementation = name}); }});
  ways.push_back({"unfold, product, fold by hand", [=] { return conv_by_hand(x, filters, kernel, margin); }});
  for (Way& way : ways) way.inputs = {x, filters};
  times.measure(options, problem_of(batch), ways, {forward, recorded, backward});

  const Tensor dy = randn({batch, filters_out, height, height}, on);
  std::vector<double> runs[6];
  for (int run = 0; run < (options.quick ? 4 : 12); ++run)
    for (std::size_t i = 0; const double seconds : time_pieces(x, filters, kernel, margin, dy))
      if (run > 0) runs[i++].push_back(seconds);  // the first allocates
  const char* const pieces[] = {"unfold", "product", "fold", "fold", "product", "unfold"};
  for (std::size_t i = 0; i < 6; ++i) {
    times.add(problem_of(batch), pieces[i], i < 3 ? forward_by_piece : backward_by_piece, time_of(runs[i]));
    times.records.back().set_label("piece", pieces[i]);
  }
}

/// The piece that takes most of a pass.
std::string largest_piece(const std::vector<Record>& pieces) {
  double all = 0;
  for (const Record& piece : pieces) all += piece.time->median;
  const Record& largest =
      *std::max_element(pieces.begin(), pieces.end(),
                        [](const Record& a, const Record& b) { return a.time->median < b.time->median; });
  return fmt::format("{}: {} takes {:.0f} % of the time.", label_text(largest, {"problem", "pass"}),
                     largest.label("way"), 100 * largest.time->median / all);
}

}  // namespace

Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Shape output{x.size(2) + 2 * padding - size + 1, x.size(3) + 2 * padding - size + 1};
  return fold(matmul(filters, columns), output, {.kernel_size = 1});
}

std::vector<double> time_pieces(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding,
                                const Tensor& dy) {
  const auto clock = benchmark::device_clock(x.device());
  std::vector<double> stamps{0};
  const auto stamp = [&](const Tensor& = {}) {
    stamps.push_back(clock->stop().wall);
    return Tensor();
  };
  clock->start();
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  stamp();
  const Tensor product = matmul(filters, columns);
  stamp();
  const Tensor y = fold(product, {dy.size(2), dy.size(3)}, {.kernel_size = 1});
  stamp();
  for (const Tensor& result : {y, product, columns}) result.register_hook(stamp);
  (void)grad({y}, {x, filters}, {dy});
  stamp();
  std::vector<double> seconds;
  for (const std::size_t end : {1, 2, 3, 5, 6, 7}) seconds.push_back(stamps[end] - stamps[end - 1]);
  return seconds;
}

Strings conclude_unfold_speed(const Times& times) {
  Strings sentences = times.compare("problem", {forward, "training"}, "way");
  for (const std::string& problem : times.values("problem"))
    for (const std::string& pass : {forward_by_piece, backward_by_piece})
      sentences.push_back(largest_piece(times.only("problem", {problem}).only("pass", {pass}).records));
  return sentences;
}

Answer unfold_speed(const AskOptions& options) {
  const std::string layer =
      fmt::format("{}, {}, {}], {} filters of {}x{}", channels, height, height, filters_out, kernel, kernel);
  Answer answer{.setup = {fmt::format("Input [N, {}, padding {}, float32. Backward is that of input and "
                                      "filters.",
                                      layer, margin)}};
  if (options.device.is_cpu()) answer.setup.push_back("There is no cuDNN on a CPU to turn on and off.");
  Times& times = answer.times;
  const std::vector<int64_t> batches =
      options.quick ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 256, 512};
  for (const int64_t batch : batches) measure_batch(options, batch, times);
  const Times largest = times.only("problem", {problem_of(batches.back())});
  answer.plot = time_bars({.title = fmt::format("[{}, {}", batches.back(), layer),
                           .series = {"way"},
                           .groups = {"problem", "pass"}},
                          largest.only("pass", {forward, recorded, backward}).records);
  times.add_sum("training", {recorded, backward});
  answer.conclusion = conclude_unfold_speed(times);
  return answer;
}

}  // namespace pleat::bench::ask
