#include "pleat/bench/ask/questions.h"
#include "pleat/bench/charts.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask {
namespace {

constexpr int64_t channels = 3, filters = 16, side = 32, layer_padding = 1;

std::vector<Way> convolutions(const Tensor& x, const Tensor& w) {
  std::vector<Way> ways;
  ConvOptions options{.padding = layer_padding};
  for (const char* asked_for : {"", ", asked for contiguous"}) {
    for (const std::string& name : fast_implementations(x, w, options)) {
      options.implementation = name;
      ways.push_back({name + asked_for, [=] { return conv2d(x, w, options); }});
    }
    options.format = MemoryFormat::contiguous;
  }
  ways.push_back(
      {"by hand: filters times columns", [=] { return conv_by_product(x, w, layer_padding, false); }});
  ways.push_back(
      {"by hand: windows times filters", [=] { return conv_by_product(x, w, layer_padding, true); }});
  return ways;
}

/// Returns the problems of batch norm.
Strings measure_batch(const AskOptions& options, int64_t batch, Times& times) {
  const TensorOptions on{.device = options.device};
  manual_seed(1);
  const Tensor x = randn({batch, channels, side, side}, on), w = randn({filters, channels, 3, 3}, on) * 0.2;
  const Tensor scale = ones({filters}, on).set_requires_grad();
  const Tensor shift = zeros({filters}, on).set_requires_grad();
  const Tensor mean = zeros({filters}, on), variance = ones({filters}, on);
  std::vector<Way> ways = convolutions(x, w), eval, train;
  for (Way& way : ways) {
    const Tensor y = no_grad(way.compute).set_requires_grad();
    way.name += fmt::format(" ({})", name(y.memory_format()));
    for (const bool training : {false, true})
      (training ? train : eval)
          .push_back({way.name,
                      [=] { return batch_norm(y, scale, shift, mean, variance, {.training = training}); },
                      {y, scale, shift}});
  }
  const std::string problem = fmt::format("batch {}, ", batch);
  times.measure(options, problem + "convolution", ways, {forward});
  times.measure(options, problem + "batch norm in evaluation", eval, {forward});
  times.measure(options, problem + "batch norm in training", train, {forward, backward});
  return {problem + "batch norm in evaluation", problem + "batch norm in training"};
}

/// The network of the question, trained for some steps: ten rows of the profiler.
std::string profile_of(const std::string& implementation, int64_t batch, Device device) {
  manual_seed(1);
  nn::Sequential net{nn::Conv2d{{.in_channels = channels,
                                 .out_channels = filters,
                                 .kernel_size = 3,
                                 .padding = layer_padding,
                                 .bias = false,
                                 .implementation = implementation}},
                     nn::BatchNorm2d{{.num_features = filters}}};
  net.to(device);
  const Tensor x = randn({batch, channels, side, side}, {.device = device});
  const Tensor dy = gradient_for(net(x));
  const auto step = [&] { net(x).backward(dy); };
  step();
  profile::Profiler profiler{{.with_modules = false}};
  for (int i = 0; i < 10; ++i) step();
  profiler.stop();
  const auto rows = profiler.profile().key_averages(
      {.group_by = profile::GroupBy::implementation | profile::GroupBy::format});
  return fmt::format("Ten training steps of Conv2d ({}) and BatchNorm2d, batch {}\n{}", implementation, batch,
                     rows.table({.row_limit = 10}));
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
  Answer answer{.setup = {fmt::format(
                    "Conv2d {} -> {}, 3x3, padding {}, no bias; BatchNorm2d {}; input [N, {}, {}, {}], "
                    "float32. Batch norm is timed on the convolution's result in the format that it has, "
                    "which stands in brackets.",
                    channels, filters, layer_padding, filters, channels, side, side)}};
  std::vector<int64_t> batches{8, 32};
  // That of the question, and one whose result no cache holds.
  if (!options.quick) batches = {128, options.device.is_cuda() ? 8192 : 2048};
  for (const int64_t batch : batches) {
    const Strings problems = measure_batch(options, batch, answer.times);
    const Times norms = answer.times.only("problem", problems);
    answer.plot =
        time_bars({.title = fmt::format("Batch norm of [{}, {}, {}, {}]", batch, filters, side, side),
                   .series = {"way"},
                   .groups = {"problem", "pass"}},
                  norms.records);
    for (const std::string& sentence : norms.compare("problem", {forward, backward}, "way"))
      answer.conclusion.push_back(sentence);
    const Tensor x = empty({batch, channels, side, side}, {.device = options.device});
    const Tensor w = empty({filters, channels, 3, 3}, {.device = options.device});
    for (const std::string& implementation : fast_implementations(x, w, {.padding = layer_padding}))
      answer.notes.push_back(profile_of(implementation, batch, options.device));
  }
  return answer;
}

}  // namespace pleat::bench::ask
