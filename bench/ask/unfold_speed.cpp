#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/bytes.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 10, height = 50, filters_out = 15, kernel = 3, margin = 1;
/// Whose columns, 0.9 MB each, stay in a cache until the product reads them.
constexpr int64_t images_a_part = 4;
const std::string by_hand = "unfold, product, fold by hand", in_parts = "unfold, product by hand, in parts";
const std::string training = "training";  ///< a pass
const Strings pieces{"unfold", "product", "fold"};

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
  ways.push_back({by_hand, [=] { return conv_by_hand(x, filters, kernel, margin); }});
  ways.push_back({in_parts, [=] { return conv_in_parts(x, filters, kernel, margin, images_a_part); }});
  for (Way& way : ways) way.inputs = {x, filters};
  times.measure(options, of_problem(problem_of(batch), ways), {forward, recorded, backward});

  const Tensor dy = randn({batch, filters_out, height, height}, on);
  std::vector<double> runs[6];
  for (int64_t run = 0; run <= options.timer.min_blocks; ++run)
    for (std::size_t i = 0; const double seconds : time_pieces(x, filters, kernel, margin, dy))
      if (run > 0) runs[i++].push_back(seconds);  // the first allocates
  const char* const names[] = {"unfold", "product", "fold", "fold", "product", "unfold"};
  for (std::size_t i = 0; i < 6; ++i)
    times.add(problem_of(batch), by_hand, i < 3 ? forward : backward, time_of(runs[i]), names[i]);
}

/// What the pieces write and read.
std::string memory_of(int64_t batch) {
  const int64_t input = batch * channels * height * height * 4;
  return fmt::format("Batch {}: the input takes {}, the column matrix {}; its gradient takes as much again.",
                     batch, text_of_bytes(input), text_of_bytes(input * kernel * kernel));
}

}  // namespace

Tensor conv_by_hand(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = size, .padding = padding});
  const Shape output{x.size(2) + 2 * padding - size + 1, x.size(3) + 2 * padding - size + 1};
  return fold(matmul(filters, columns), output, {.kernel_size = 1});
}

Tensor conv_in_parts(const Tensor& x, const Tensor& filters, int64_t size, int64_t padding, int64_t images) {
  const int64_t height_out = x.size(2) + 2 * padding - size + 1;
  const int64_t width_out = x.size(3) + 2 * padding - size + 1;
  std::vector<Tensor> results;
  for (const Tensor& part : split(x, images)) {
    const Tensor columns = unfold(part, {.kernel_size = size, .padding = padding});
    results.push_back(
        reshape(matmul(filters, columns), {part.size(0), filters.size(0), height_out, width_out}));
  }
  return cat(results);
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
  Strings sentences = times.compare("problem", {forward, training}, "way");
  for (const std::string& problem : times.values("problem"))
    for (const std::string& pass : {forward, backward})
      if (const Times here = times.only("problem", {problem}).only("pass", {pass}).only("piece", pieces);
          !here.records.empty())
        sentences.push_back(here.largest_piece());
  // What the diagnosis is good for.
  for (std::string& sentence :
       times.only("way", {by_hand, in_parts}).compare("problem", {forward, training}, "way"))
    sentences.push_back(std::move(sentence));
  return sentences;
}

Answer unfold_speed(const AskOptions& options) {
  const std::string layer =
      fmt::format("{}, {}, {}], {} filters of {}x{}", channels, height, height, filters_out, kernel, kernel);
  Answer answer{.setup = {fmt::format("Input [N, {}, padding {}, float32. Backward is that of input and "
                                      "filters, training forward and backward.",
                                      layer, margin)}};
  if (options.device.is_cpu()) answer.setup.push_back("There is no cuDNN on a CPU to turn on and off.");
  Times& times = answer.times;
  const std::vector<int64_t> batches =
      options.quick ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2, 256, 512};
  for (const int64_t batch : batches) {
    answer.setup.push_back(memory_of(batch));
    measure_batch(options, batch, times);
    answer.notes.push_back(
        times.only("problem", {problem_of(batch)})
            .only("piece", pieces)
            .side_by_side(problem_of(batch) + ", by hand: pieces, timed by hooks", "piece", "pass"));
  }
  const Times largest = times.only("problem", {problem_of(batches.back())}).only("piece", {""});
  answer.plot = time_bars({.title = fmt::format("[{}, {}", batches.back(), layer),
                           .series = {"way"},
                           .groups = {"problem", "pass"}},
                          largest.only("pass", {forward, recorded, backward}).records);
  times.add_sum(training, {recorded, backward});
  answer.conclusion = conclude_unfold_speed(times);
  return answer;
}

}  // namespace pleat::bench::ask
