#include "pleat/train/classifier_report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/instruction_set.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/tensor/create.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/plot/chart.h"
#include "pleat/train/html_page.h"

namespace pleat::train {
namespace {

using Cell = HtmlPage::Cell;

#ifdef __clang__
constexpr const char* compiler = __VERSION__;  // has the name
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

void add_curves(HtmlPage& page, const MetricLog& log) {
  struct Wanted {
    const char *title, *training, *test;
    bool percent;
  };
  const std::vector<std::string> names = log.names();
  std::vector<plot::LineChart> charts;
  for (const Wanted& wanted : {Wanted{"Loss", "train_loss", "test_loss", false},
                               Wanted{"Accuracy", "train_accuracy", "test_accuracy", true}}) {
    plot::LineChart chart{.title = wanted.title, .x_axis = "epoch", .percent = wanted.percent};
    for (const auto& [line, figure] :
         {std::pair{"training", wanted.training}, std::pair{"test", wanted.test}}) {
      if (std::find(names.begin(), names.end(), figure) == names.end()) continue;
      const std::vector<double>&epochs = log["epoch"], &values = log[figure];
      for (std::size_t i = 0; i < values.size(); ++i) chart.add(line, {epochs[i], values[i]});
    }
    if (!chart.lines.empty()) charts.push_back(std::move(chart));
  }
  if (charts.empty()) return;
  page.heading("Learning curves");
  page.chart(plot::to_svg("", charts));
}

void add_classes(HtmlPage& page, const Predictions& predictions, const std::vector<std::string>& names) {
  page.heading("Accuracy by class");
  plot::BarChart chart{.axis = "share of the class's test pictures that are recognised [%]"};
  const std::vector<double> shares = predictions.class_accuracy();
  for (std::size_t c = 0; c < shares.size(); ++c)
    chart.add(names[c], "accuracy",
              {.value = 100 * shares[c], .note = std::isnan(shares[c]) ? "no pictures" : ""});
  page.chart(plot::to_svg(chart));
}

/// Rows are classes, columns what was predicted; a row's ground is as deep as its share.
void add_confusion(HtmlPage& page, const Predictions& predictions, const std::vector<std::string>& names) {
  page.heading("What is taken for what");
  const auto counts = predictions.confusion();
  constexpr std::size_t most = 25;  // columns that can still be read
  if (counts.size() <= most) {
    std::vector<std::string> titles{"is \\ taken for"};
    titles.insert(titles.end(), names.begin(), names.end());
    std::vector<HtmlPage::Row> rows;
    for (std::size_t target = 0; target < counts.size(); ++target) {
      int64_t all = 0;
      for (const int64_t count : counts[target]) all += count;
      HtmlPage::Row row{{.text = names[target], .strong = true}};
      for (std::size_t predicted = 0; predicted < counts.size(); ++predicted) {
        const int64_t count = counts[target][predicted];
        row.push_back({.text = count == 0 ? "" : std::to_string(count),
                       .is_number = true,
                       .share = all == 0 ? 0 : 0.85 * static_cast<double>(count) / static_cast<double>(all),
                       .strong = predicted == target});
      }
      rows.push_back(std::move(row));
    }
    page.table(titles, rows);
  }
  struct Pair {
    std::size_t target, predicted;
    int64_t count;
  };
  std::vector<Pair> pairs;
  for (std::size_t t = 0; t < counts.size(); ++t)
    for (std::size_t p = 0; p < counts.size(); ++p)
      if (t != p && counts[t][p] > 0) pairs.push_back({t, p, counts[t][p]});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.count > b.count; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, pairs.size()); ++i)
    text += fmt::format("{}{} for {} ({})", text.empty() ? "Most often: " : ", ", names[pairs[i].target],
                        names[pairs[i].predicted], pairs[i].count);
  page.paragraph(text.empty() ? "Nothing is mistaken." : text + ".");
}

void add_mistakes(HtmlPage& page, const ClassifierReport& report, const std::vector<std::string>& names) {
  constexpr int64_t shown = 24;
  const std::vector<Prediction> worst = report.predictions.worst(shown);
  if (worst.empty() || report.images == nullptr) return;
  page.heading("The worst mistakes");
  page.paragraph(
      "Test pictures with the largest loss: their number in the set, what they are, and what they are "
      "taken for with which probability.");
  std::vector<HtmlPage::Picture> pictures;
  for (const Prediction& p : worst) {
    const std::vector<int64_t> sample{p.sample};
    const Tensor image = report.images->get(sample).inputs;
    pictures.push_back(
        {.image = squeeze(image, 0),
         .caption = fmt::format("{}: {} → {} {}", p.sample, names[static_cast<std::size_t>(p.target)],
                                names[static_cast<std::size_t>(p.predicted)], percent(p.probability))});
  }
  page.pictures(pictures);
}

/// The filters of the first convolution whose input is a picture, each from its least to its greatest weight.
void add_filters(HtmlPage& page, const nn::Module& net) {
  for (const auto& [name, parameter] : net.named_parameters()) {
    if (parameter.rank() != 4) continue;
    const int64_t filters = parameter.size(0), channels = parameter.size(1);
    const int64_t height = parameter.size(2), width = parameter.size(3);
    if ((channels != 1 && channels != 3) || height * width < 4) return;
    const std::vector<float> weights =
        parameter.to(float32).to(Device{}).to(MemoryFormat::contiguous).to_vector<float>();
    std::vector<HtmlPage::Picture> pictures;
    constexpr int64_t most = 64;
    const auto size = static_cast<std::ptrdiff_t>(channels * height * width);
    for (int64_t f = 0; f < std::min(filters, most); ++f) {
      std::vector<float> filter(weights.begin() + f * size, weights.begin() + (f + 1) * size);
      const auto [least, greatest] = std::minmax_element(filter.begin(), filter.end());
      const float low = *least, range = *greatest - *least;
      for (float& weight : filter) weight = range > 0 ? (weight - low) / range : 0.5F;
      pictures.push_back({.image = from_vector(filter, {channels, height, width}, Device{}), .width = 48});
    }
    page.heading("Filters of the first layer");
    page.paragraph(fmt::format("{}: {} filters of {} × {} pixels.", name, filters, height, width));
    page.pictures(pictures);
    return;
  }
}

void add_layers(HtmlPage& page, const std::vector<LayerTimes>& layers) {
  if (layers.empty()) return;
  page.heading("Layers");
  std::set<std::string> implementations;
  for (const LayerTimes& layer : layers)
    for (const auto& [name, milliseconds] : layer.milliseconds) implementations.insert(name);
  if (!implementations.empty())
    page.paragraph(
        "Milliseconds of a convolution's forward pass and both gradients together, by implementation; the "
        "fastest is set in bold.");
  std::vector<std::string> titles{"layer", "type", "output", "parameters"};
  titles.insert(titles.end(), implementations.begin(), implementations.end());
  std::vector<HtmlPage::Row> rows;
  for (const LayerTimes& layer : layers) {
    HtmlPage::Row row{{.text = layer.path},
                      {.text = layer.type + "(" + layer.options + ")"},
                      {.text = to_string(layer.output)},
                      {.text = grouped(layer.parameters), .is_number = true}};
    double fastest = 0;
    for (const auto& [name, milliseconds] : layer.milliseconds)
      fastest = fastest == 0 ? milliseconds : std::min(fastest, milliseconds);
    for (const std::string& name : implementations) {
      const auto found = layer.milliseconds.find(name);
      if (found == layer.milliseconds.end())
        row.push_back({.text = "", .is_number = true});
      else
        row.push_back({.text = fmt::format("{:.3g}", found->second),
                       .is_number = true,
                       .strong = found->second == fastest});
    }
    rows.push_back(std::move(row));
  }
  page.table(titles, rows);
}

std::string machine_of(Device device) {
  std::string text =
      device.is_cuda() ? cuda::properties(device).name : fmt::format("CPU, {} threads", num_threads());
  return fmt::format("{}; instruction set {}", text, instruction_set());
}

}  // namespace

void write_report(const std::filesystem::path& file, const Classifier& classifier,
                  const ClassifierReport& report) {
  const NoGrad off_the_tape;
  const nn::Sequential& net = classifier.net;
  const Device device = net.parameters().front().device();
  const bool tested = !report.predictions.samples.empty();
  std::string subtitle = fmt::format("{}, {} parameters, {} classes", classifier.model,
                                     grouped(net.num_parameters()), classifier.class_names.size());
  if (tested)
    subtitle += fmt::format("; {} of {} test pictures recognised, loss {:.4f}",
                            percent(report.predictions.accuracy()), report.predictions.samples.size(),
                            report.predictions.loss());
  HtmlPage page(report.title, subtitle);
  if (report.log != nullptr && report.log->rows() > 0) add_curves(page, *report.log);
  if (tested) {
    add_classes(page, report.predictions, classifier.class_names);
    add_confusion(page, report.predictions, classifier.class_names);
    add_mistakes(page, report, classifier.class_names);
  }
  add_filters(page, net);
  add_layers(page, report.layers);
  page.heading("Run");
  if (!report.command.empty()) {
    page.paragraph("This command repeats it:");
    page.code(report.command);
  }
  std::vector<HtmlPage::Row> rows;
  for (const auto& [name, value] : report.options) rows.push_back({{.text = name}, {.text = value}});
  rows.push_back({{.text = "Pleat"}, {.text = fmt::format("{}, compiled by {}", PLEAT_VERSION, compiler)}});
  rows.push_back({{.text = "machine"}, {.text = machine_of(device)}});
  rows.push_back({{.text = "written"}, {.text = today()}});
  page.table({"option", "value"}, rows);
  write_file("write_report", file, page.document());
}

}  // namespace pleat::train
