#include "pleat/bench/ask/batchnorm_after_unfold.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "pleat/bench/ask/measure.h"
#include "pleat/bench/ask/picture.h"
#include "pleat/bench/machine.h"
#include "pleat/core/base/format.h"
#include "pleat/pleat.h"

namespace pleat::bench::ask::batchnorm_after_unfold {
namespace {

constexpr int64_t channels = 3, filters = 16, side = 32, layer_padding = 1;

/// That of the question, and one whose result no cache holds.
std::vector<int64_t> batches(const AskOptions& options) {
  if (options.quick) return {8, 32};
  return {128, options.device.is_cuda() ? 8192 : 2048};
}

struct Convolution {
  std::string name;
  bool is_implementation;
  std::function<Tensor(const Tensor& x, const Tensor& w)> compute;
};

std::vector<Convolution> convolutions(Device device) {
  std::vector<Convolution> all;
  for (const std::string& name : fast_implementations(device))
    all.push_back({name, true, [name](const Tensor& x, const Tensor& w) {
                     return conv2d(x, w, {.padding = layer_padding, .implementation = name});
                   }});
  for (const std::string& name : fast_implementations(device))
    all.push_back(
        {name + ", asked for contiguous", false, [name](const Tensor& x, const Tensor& w) {
           return conv2d(
               x, w, {.padding = layer_padding, .implementation = name, .format = MemoryFormat::contiguous});
         }});
  all.push_back({"by hand: filters times columns", false,
                 [](const Tensor& x, const Tensor& w) { return conv_by_columns(x, w, layer_padding); }});
  all.push_back({"by hand: windows times filters", false,
                 [](const Tensor& x, const Tensor& w) { return conv_by_windows(x, w, layer_padding); }});
  return all;
}

struct Operands {
  Tensor x, w;
  Tensor scale, shift, mean, variance;  ///< of batch norm

  Operands(int64_t batch, Device device) {
    manual_seed(1);
    x = randn({batch, channels, side, side}, {.device = device});
    w = randn({filters, channels, 3, 3}, {.device = device}) * 0.2;
    scale = ones({filters}, {.device = device}).set_requires_grad();
    shift = zeros({filters}, {.device = device}).set_requires_grad();
    mean = zeros({filters}, {.device = device});
    variance = ones({filters}, {.device = device});
  }
};

Tensor normalize(const Operands& o, const Tensor& y, bool training) {
  return batch_norm(y, o.scale, o.shift, o.mean, o.variance, {.training = training});
}

std::vector<Row> time_batch(const AskOptions& options, int64_t batch, Answer& answer) {
  const Operands o(batch, options.device);
  std::vector<Row> rows;
  std::vector<Way> ways;
  for (const Convolution& convolution : convolutions(options.device)) {
    const Tensor y = no_grad([&] { return convolution.compute(o.x, o.w); }).set_requires_grad();
    const Tensor z = normalize(o, y, true);
    const Tensor dz = ops::to_format(randn(z.shape(), {.device = options.device}), z.memory_format());
    rows.push_back({batch, convolution.name, convolution.is_implementation, y.memory_format()});
    const std::string what = fmt::format("batch {}, {}, ", batch, convolution.name);
    ways.push_back(
        {what + "convolution", [=] { (void)no_grad([&] { return convolution.compute(o.x, o.w); }); }});
    ways.push_back(
        {what + "batch norm, eval", [=] { (void)no_grad([&] { return normalize(o, y, false); }); }});
    ways.push_back(
        {what + "batch norm, train", [=] { (void)no_grad([&] { return normalize(o, y, true); }); }});
    ways.push_back({what + "batch norm, backward", [=] {
                      (void)grad({z}, {y, o.scale, o.shift}, {dz}, {.retain_graph = true});
                    }});
  }
  time_in_turns(options, ways, answer);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto time = [&](std::size_t k) { return time_of(answer, ways[4 * i + k].what); };
    rows[i].conv = time(0);
    rows[i].eval = time(1);
    rows[i].train = time(2);
    rows[i].backward = time(3);
  }
  return rows;
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
  const Tensor y = net(x);
  const Tensor dy = ops::to_format(randn(y.shape(), {.device = device}), y.memory_format());
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

std::vector<Table> tables(const std::vector<Row>& rows) {
  std::vector<Table> result;
  for (const Row& row : rows) {
    const std::string title = fmt::format("batch {}", row.batch);
    if (result.empty() || result.back().title != title)
      result.push_back(
          {title, {"", "batch norm receives", "convolution", "batch norm: eval", "train", "backward"}, {}});
    result.back().rows.push_back({row.convolution, name(row.format), text(row.conv), text(row.eval),
                                  text(row.train), text(row.backward)});
  }
  return result;
}

plot::BarChart chart(const std::vector<Row>& rows, Device device) {
  const int64_t batch = rows.back().batch;
  plot::BarChart chart{.title = fmt::format("Batch norm of [{}, {}, {}, {}] after each convolution", batch,
                                            filters, side, side),
                       .subtitle = describe_machine(device, 0),
                       .axis = "time [ms]"};
  for (const Row& row : rows) {
    if (row.batch != batch) continue;
    const std::string group = fmt::format("{} ({})", row.convolution, name(row.format));
    add_bar(chart, group, "eval", row.eval);
    add_bar(chart, group, "train", row.train);
    add_bar(chart, group, "backward", row.backward);
  }
  return chart;
}

/// The layouts that came, and after what.
std::string formats_sentence(const std::vector<const Row*>& rows) {
  std::vector<std::string> parts;
  for (const MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::contiguous}) {
    std::vector<std::string> names;
    for (const Row* row : rows)
      if (row->format == format) names.push_back('"' + row->convolution + '"');
    if (!names.empty()) parts.push_back(fmt::format("{} after {}", name(format), list_text(names)));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return "Batch norm receives " + text + '.';
}

/// Implementations of the convolution against each other.
std::vector<std::string> implementation_sentences(const std::vector<const Row*>& rows, int64_t batch) {
  const Row* first = nullptr;
  std::vector<std::string> sentences;
  for (const Row* row : rows) {
    if (!row->is_implementation) continue;
    if (first == nullptr) {
      first = row;
      continue;
    }
    const bool same_format = row->format == first->format;
    std::string text = fmt::format("Batch {}, batch norm after {} and after {}, ", batch, row->convolution,
                                   first->convolution);
    text += same_format ? "which give the same format: " : "which give different formats: ";
    const auto add = [&](const char* pass, const Time& a, const Time& b) {
      text += fmt::format("{} {} and {}, ", pass, benchmark::format_time(a.median, 3),
                          benchmark::format_time(b.median, 3));
    };
    add("eval", row->eval, first->eval);
    add("train", row->train, first->train);
    add("backward", row->backward, first->backward);
    const auto all = [](const Row* r) { return joined(r->eval, joined(r->train, r->backward)); };
    const Ratio together = ratio(all(row), all(first));
    text += fmt::format("together {:.2f} times as much (quartiles {:.2f} to {:.2f}): ", together.value,
                        together.low, together.high);
    const Relation relation = relate(all(row), all(first));
    sentences.push_back(text + (relation == Relation::level ? "it costs the same after both."
                                : relation == Relation::unclear
                                    ? "no difference that stands out of the noise."
                                    : "it does NOT cost the same after both."));
  }
  return sentences;
}

/// Means over the rows of a format, of their medians and quartiles.
Time mean_of(const std::vector<const Row*>& rows, MemoryFormat format, Time Row::*pass) {
  Time sum;
  double n = 0;
  for (const Row* row : rows) {
    if (row->format != format) continue;
    sum = joined(sum, row->*pass);
    ++n;
  }
  sum.median /= n;
  sum.lower_quartile /= n;
  sum.upper_quartile /= n;
  return sum;
}

std::vector<std::string> layout_sentences(const std::vector<const Row*>& rows, int64_t batch) {
  const auto has = [&](MemoryFormat format) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row* row) { return row->format == format; });
  };
  if (!has(MemoryFormat::contiguous) || !has(MemoryFormat::channels_last)) return {};
  std::vector<std::string> sentences;
  const auto add = [&](const char* pass, Time Row::*time) {
    sentences.push_back(
        fmt::format("Batch {}, batch norm {} by layout: {}.", batch, pass,
                    comparison("contiguous", mean_of(rows, MemoryFormat::contiguous, time), "channels_last",
                               mean_of(rows, MemoryFormat::channels_last, time))));
  };
  add("eval", &Row::eval);
  add("train", &Row::train);
  add("backward", &Row::backward);
  return sentences;
}

}  // namespace

Tensor conv_by_columns(const Tensor& x, const Tensor& w, int64_t padding) {
  const Tensor columns =
      unfold(x, {.kernel_size = {w.size(2), w.size(3)}, .padding = padding});  // [N, C R S, L]
  const Shape output{x.size(0), w.size(0), x.size(2) + 2 * padding - w.size(2) + 1,
                     x.size(3) + 2 * padding - w.size(3) + 1};
  return reshape(matmul(flatten(w, 1), columns), output);
}

Tensor conv_by_windows(const Tensor& x, const Tensor& w, int64_t padding) {
  const Tensor columns = unfold(x, {.kernel_size = {w.size(2), w.size(3)}, .padding = padding});
  const Tensor rows = matmul(transpose(columns, 1, 2), transpose(flatten(w, 1), 0, 1));  // [N, L, K]
  const Shape output{x.size(0), w.size(0), x.size(2) + 2 * padding - w.size(2) + 1,
                     x.size(3) + 2 * padding - w.size(3) + 1};
  return reshape(transpose(rows, 1, 2), output);
}

std::vector<std::string> conclude(const std::vector<Row>& rows) {
  std::vector<std::string> sentences;
  std::vector<int64_t> seen;
  for (const Row& first : rows) {
    if (std::find(seen.begin(), seen.end(), first.batch) != seen.end()) continue;
    std::vector<const Row*> of_batch;
    for (const Row& row : rows)
      if (row.batch == first.batch) of_batch.push_back(&row);
    if (seen.empty()) sentences.push_back(formats_sentence(of_batch));
    seen.push_back(first.batch);
    for (const auto& more :
         {implementation_sentences(of_batch, first.batch), layout_sentences(of_batch, first.batch)})
      sentences.insert(sentences.end(), more.begin(), more.end());
  }
  return sentences;
}

Answer ask(const AskOptions& options) {
  Answer answer{.setup = {fmt::format(
                    "Conv2d {} -> {}, 3x3, padding {}, no bias; BatchNorm2d {}; input [N, {}, {}, {}], "
                    "float32. Batch norm is timed on the convolution's result as it lies.",
                    channels, filters, layer_padding, filters, channels, side, side)}};
  if (options.quick) answer.setup.emplace_back(quick_note);
  std::vector<Row> rows;
  for (const int64_t batch : batches(options)) {
    const std::vector<Row> more = time_batch(options, batch, answer);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  answer.tables = tables(rows);
  for (const int64_t batch : batches(options))
    for (const std::string& implementation : fast_implementations(options.device))
      answer.profile +=
          (answer.profile.empty() ? "" : "\n") + profile_of(implementation, batch, options.device);
  answer.plot = plot::svg(chart(rows, options.device));
  answer.conclusion = conclude(rows);
  return answer;
}

}  // namespace pleat::bench::ask::batchnorm_after_unfold
