#include <algorithm>
#include <functional>

#include "pleat/bench/ask/questions.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::batchnorm_after_unfold {
namespace {

constexpr int64_t channels = 3, filters = 16, side = 32, layer_padding = 1;
const std::vector<std::string> norm_passes = {"eval", "train", "backward"};

/// That of the question, and one whose result no cache holds.
std::vector<int64_t> batches(const AskOptions& options) {
  if (options.quick) return {8, 32};
  return {128, options.device.is_cuda() ? 8192 : 2048};
}

struct Convolution {
  Way way;
  std::function<Tensor(const Tensor& x, const Tensor& w)> compute;
};

std::vector<Convolution> convolutions(Device device) {
  std::vector<Convolution> all;
  ConvOptions options{.padding = layer_padding};
  for (const bool contiguous : {false, true})
    for (const std::string& name : fast_implementations(device)) {
      options.implementation = name;
      if (contiguous) options.format = MemoryFormat::contiguous;
      all.push_back({{contiguous ? name + ", asked for contiguous" : name, !contiguous},
                     [options](const Tensor& x, const Tensor& w) { return conv2d(x, w, options); }});
    }
  all.push_back({{"by hand: filters times columns", false},
                 [](const Tensor& x, const Tensor& w) { return conv_by_columns(x, w, layer_padding); }});
  all.push_back({{"by hand: windows times filters", false},
                 [](const Tensor& x, const Tensor& w) { return conv_by_windows(x, w, layer_padding); }});
  return all;
}

/// Returns the ways in which it was computed.
std::vector<Way> time_batch(const AskOptions& options, int64_t batch, Times& times) {
  const TensorOptions on{.device = options.device};
  manual_seed(1);
  const Tensor x = randn({batch, channels, side, side}, on), w = randn({filters, channels, 3, 3}, on) * 0.2;
  const Tensor scale = ones({filters}, on).set_requires_grad();
  const Tensor shift = zeros({filters}, on).set_requires_grad();
  const Tensor mean = zeros({filters}, on), variance = ones({filters}, on);
  const auto normalize = [=](const Tensor& y, bool training) {
    return batch_norm(y, scale, shift, mean, variance, {.training = training});
  };
  std::vector<Way> ways;
  std::vector<Work> all;
  for (const auto& [way, convolution] : convolutions(options.device)) {
    const auto compute = [=, f = convolution] { return no_grad([&] { return f(x, w); }); };
    const Tensor y = compute().set_requires_grad();
    const Tensor z = normalize(y, true), dz = gradient_for(z);
    ways.push_back({way.name, way.is_implementation, y.memory_format()});
    const auto add = [&, name = way.name](const char* pass, std::function<void()> run) {
      all.push_back({fmt::format("batch {}", batch), name, pass, std::move(run)});
    };
    add("convolution", [=] { (void)compute(); });
    add("eval", [=] { (void)no_grad([&] { return normalize(y, false); }); });
    add("train", [=] { (void)no_grad([&] { return normalize(y, true); }); });
    add("backward", [=] { (void)grad({z}, {y, scale, shift}, {dz}, {.retain_graph = true}); });
  }
  times.measure(options, all);
  return ways;
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

/// The layouts that came, and after what.
std::string formats_sentence(const std::vector<Way>& ways) {
  std::string text;
  for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::contiguous}) {
    std::string names;
    for (const Way& way : ways)
      if (way.format == format) names += (names.empty() ? "\"" : ", \"") + way.name + '"';
    if (!names.empty()) text += fmt::format("{}{} after {}", text.empty() ? "" : "; ", name(format), names);
  }
  return "Batch norm receives " + text + '.';
}

/// An implementation of the convolution beside the first.
std::string implementation_sentence(const Times& times, const std::string& problem, const Way& way,
                                    const Way& first) {
  std::string passes;
  for (const std::string& pass : norm_passes)
    passes += fmt::format("{} {} and {}, ", pass, median_text(times.at(problem, way.name, pass)),
                          median_text(times.at(problem, first.name, pass)));
  const Time here = times.total(problem, way.name, norm_passes);
  const Time there = times.total(problem, first.name, norm_passes);
  const Ratio together = ratio(here, there);
  const std::string different = "it does NOT cost the same after both";
  return fmt::format(
      "{}, batch norm after {} and after {}, which give {}: {}together {:.2f} times as much (quartiles "
      "{:.2f} to {:.2f}): {}.",
      capitalized(problem), way.name, first.name,
      way.format == first.format ? "the same format" : "different formats", passes, together.value,
      together.low, together.high,
      verdict(here, there,
              {different, "it costs the same after both", "no difference that stands out of the noise",
               different}));
}

/// Means over the ways that give a format, of their medians and quartiles.
Time mean_of(const Times& times, const std::string& problem, const std::vector<Way>& ways,
             MemoryFormat format, const std::string& pass) {
  Time all;
  double n = 0;
  for (const Way& way : ways)
    if (way.format == format) all = sum(all, times.at(problem, way.name, pass)), ++n;
  for (double* seconds : {&all.median, &all.lower_quartile, &all.upper_quartile}) *seconds /= n;
  return all;
}

/// [N, C R S, L]
Tensor columns_of(const Tensor& x, const Tensor& w, int64_t padding) {
  return unfold(x, {.kernel_size = {w.size(2), w.size(3)}, .padding = padding});
}

Shape result_shape(const Tensor& x, const Tensor& w, int64_t padding) {
  return {x.size(0), w.size(0), x.size(2) + 2 * padding - w.size(2) + 1,
          x.size(3) + 2 * padding - w.size(3) + 1};
}

}  // namespace

Tensor conv_by_columns(const Tensor& x, const Tensor& w, int64_t padding) {
  return reshape(matmul(flatten(w, 1), columns_of(x, w, padding)), result_shape(x, w, padding));
}

Tensor conv_by_windows(const Tensor& x, const Tensor& w, int64_t padding) {
  const Tensor windows = transpose(columns_of(x, w, padding), 1, 2);
  const Tensor rows = matmul(windows, transpose(flatten(w, 1), 0, 1));  // [N, L, K]
  return reshape(transpose(rows, 1, 2), result_shape(x, w, padding));
}

std::vector<std::string> conclude(const Times& times, const std::vector<Way>& ways) {
  std::vector<std::string> sentences{formats_sentence(ways)};
  const auto gives = [&](MemoryFormat format) {
    return std::any_of(ways.begin(), ways.end(), [&](const Way& way) { return way.format == format; });
  };
  for (const std::string& problem : times.problems()) {
    const Way* first = nullptr;
    for (const Way& way : ways) {
      if (way.is_implementation && first != nullptr)
        sentences.push_back(implementation_sentence(times, problem, way, *first));
      if (way.is_implementation && first == nullptr) first = &way;
    }
    if (!gives(MemoryFormat::contiguous) || !gives(MemoryFormat::channels_last)) continue;
    for (const std::string& pass : norm_passes)
      sentences.push_back(fmt::format(
          "{}, batch norm {} by layout: {}.", capitalized(problem), pass,
          comparison("contiguous", mean_of(times, problem, ways, MemoryFormat::contiguous, pass),
                     "channels_last", mean_of(times, problem, ways, MemoryFormat::channels_last, pass))));
  }
  return sentences;
}

Answer ask(const AskOptions& options) {
  Answer answer{.setup = {fmt::format(
                    "Conv2d {} -> {}, 3x3, padding {}, no bias; BatchNorm2d {}; input [N, {}, {}, {}], "
                    "float32. Batch norm is timed on the convolution's result in the format that it has.",
                    channels, filters, layer_padding, filters, channels, side, side)}};
  std::vector<Way> ways;
  for (const int64_t batch : batches(options)) ways = time_batch(options, batch, answer.times);
  const auto format_after = [&](const std::string& way) {
    return std::string(name(
        std::find_if(ways.begin(), ways.end(), [&](const Way& one) { return one.name == way; })->format));
  };
  const Times& times = answer.times;
  for (const std::string& problem : times.problems())
    answer.tables.push_back(
        table(problem, times.rows({problem}),
              {{"batch norm receives", [&](const Cell& row) { return format_after(row.way); }},
               times.column("convolution"),
               times.column("batch norm: eval", {"eval"}),
               times.column("train"),
               times.column("backward")}));
  for (const int64_t batch : batches(options))
    for (const std::string& implementation : fast_implementations(options.device))
      answer.tables.push_back(profile_of(implementation, batch, options.device));
  answer.plot = bars(fmt::format("Batch norm of [{}, {}, {}, {}] after each convolution",
                                 batches(options).back(), filters, side, side),
                     options.device, times, [&](const Cell& cell) -> Place {
                       if (cell.problem != times.problems().back() || cell.pass == "convolution") return {};
                       return {{fmt::format("{} ({})", cell.way, format_after(cell.way)), cell.pass}};
                     });
  answer.conclusion = conclude(times, ways);
  return answer;
}

}  // namespace pleat::bench::ask::batchnorm_after_unfold
