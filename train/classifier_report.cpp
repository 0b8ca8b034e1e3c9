// The report of a training: first the HTML page that holds it, then the parts that it shows.
#include "pleat/train/classifier_report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <set>

#include "pleat/autograd/grad_mode.h"
#include "pleat/core/base/format.h"
#include "pleat/core/base/instruction_set.h"
#include "pleat/core/base/text_table.h"
#include "pleat/core/device/cuda.h"
#include "pleat/core/files/atomic_file.h"
#include "pleat/core/parallel/parallel.h"
#include "pleat/core/system/console.h"
#include "pleat/core/tensor/create.h"
#include "pleat/data/image.h"
#include "pleat/ops/shape/shape.h"
#include "pleat/plot/chart.h"

namespace pleat::train {
namespace {

using plot::svg::escaped;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1d2126; --quiet: #666c75; --line: #d9dce1; --ground: #ffffff; --tint: 0, 114, 178; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --quiet: #a2a9b3; --line: #3a3f47; --ground: #16191d; --tint: 58, 160, 224; } }
body { color: var(--ink); background: var(--ground); font: 15px/1.5 "DejaVu Sans", system-ui, sans-serif; max-width: 1120px; margin: 32px auto; padding: 0 24px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 40px 0 12px; }
.subtitle { color: var(--quiet); margin: 4px 0 0; }
.chart svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; } th { text-align: left; font-weight: 600; }
td, th { padding: 4px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } td.strong { font-weight: 700; }
pre { background: rgba(var(--tint), .08); padding: 12px 16px; overflow-x: auto; border-radius: 6px; }
.pictures { display: flex; flex-wrap: wrap; gap: 14px; } figure { margin: 0; } figcaption { font-size: 12px; color: var(--quiet); }
img { image-rendering: pixelated; display: block; border-radius: 3px; })";

/// RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < given ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j) text += j <= given ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

/// What stands in a cell of a table.
struct Cell {
  std::string text = {};
  bool is_number = false;  ///< stands right
  double share = 0;        ///< 0 to 1: how deeply its ground is coloured
  bool strong = false;
};
using Row = std::vector<Cell>;

struct Picture {
  Tensor image;  ///< as data::encode_png takes it
  std::string caption = {};
  int width = 96;  ///< pixels on the screen
};

/// A page of one file: pictures and charts are inside, and nothing is loaded from elsewhere. It follows
/// the reader's light or dark colours. Text may be any UTF-8.
class HtmlPage {
 public:
  HtmlPage(const std::string& title, const std::string& subtitle) : title_(escaped(title)) {
    body_ = fmt::format("<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n", title_, escaped(subtitle));
  }

  void heading(const std::string& text) { body_ += "<h2>" + escaped(text) + "</h2>\n"; }
  void paragraph(const std::string& text) { body_ += "<p>" + escaped(text) + "</p>\n"; }
  /// Text as it is, with its line breaks.
  void code(const std::string& text) { body_ += "<pre>" + escaped(text) + "</pre>\n"; }
  /// An SVG document.
  void chart(const std::string& svg) { body_ += "<div class=\"chart\">" + svg + "</div>\n"; }

  void table(const std::vector<std::string>& titles, const std::vector<Row>& rows) {
    body_ += "<div class=\"wide\"><table>\n<tr>";
    for (std::size_t i = 0; i < titles.size(); ++i) {
      const bool number = !rows.empty() && i < rows[0].size() && rows[0][i].is_number;
      body_ += fmt::format("<th{}>{}</th>", number ? " class=\"number\"" : "", escaped(titles[i]));
    }
    body_ += "</tr>\n";
    for (const Row& row : rows) {
      body_ += "<tr>";
      for (const auto& [text, is_number, share, strong] : row) {
        const std::string ground =
            share > 0 ? fmt::format(" style=\"background: rgba(var(--tint), {:.3f})\"", share) : "";
        body_ += fmt::format("<td{}{}>{}</td>",
                             is_number ? (strong ? " class=\"number strong\"" : " class=\"number\"")
                                       : (strong ? " class=\"strong\"" : ""),
                             ground, escaped(text));
      }
      body_ += "</tr>\n";
    }
    body_ += "</table></div>\n";
  }

  /// Pictures side by side.
  void pictures(const std::vector<Picture>& pictures) {
    constexpr int caption_width = 122;  // pixels on the screen
    body_ += "<div class=\"pictures\">\n";
    for (const auto& [image, caption, width] : pictures)
      body_ += fmt::format(
          "<figure style=\"width: {0}px\"><img width=\"{1}\" alt=\"{2}\" src=\"data:image/png;base64,{3}\">"
          "<figcaption>{2}</figcaption></figure>\n",
          caption.empty() ? width : std::max(width, caption_width), width, escaped(caption),
          base64(data::encode_png(image)));
    body_ += "</div>\n";
  }

  std::string document() const {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}\n</style>\n</head>\n"
        "<body>\n{}</body>\n</html>\n",
        title_, style, body_);
  }

 private:
  std::string title_, body_;
};

#ifdef __clang__
constexpr const char* compiler = __VERSION__;  // has the name
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share); }

std::string today() {
  const std::tm now = system::local_time(std::time(nullptr));
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &now);
  return text;
}

void add_curves(HtmlPage& page, const MetricLog& log) {
  const std::vector<std::string> names = log.names();
  std::vector<plot::LineChart> charts;
  for (const auto& [title, figure] : {std::pair{"Loss", "_loss"}, {"Accuracy", "_accuracy"}}) {
    plot::LineChart chart{.title = title, .x_axis = "epoch", .percent = title == std::string("Accuracy")};
    for (const auto& [line, set] : {std::pair{"training", "train"}, {"test", "test"}}) {
      const std::string name = std::string(set) + figure;
      if (std::ranges::find(names, name) == names.end()) continue;
      const std::vector<double>&epochs = log["epoch"], &values = log[name];
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
  const auto counts = predictions.confusion().counts();
  constexpr std::size_t most = 25;  // columns that can still be read
  if (counts.size() <= most) {
    std::vector<std::string> titles{"is \\ taken for"};
    titles.insert(titles.end(), names.begin(), names.end());
    std::vector<Row> rows;
    for (std::size_t target = 0; target < counts.size(); ++target) {
      const auto all = std::accumulate(counts[target].begin(), counts[target].end(), 0.0);
      Row row{{.text = names[target], .strong = true}};
      for (std::size_t predicted = 0; predicted < counts.size(); ++predicted) {
        const int64_t count = counts[target][predicted];
        row.push_back({.text = count == 0 ? "" : std::to_string(count),
                       .is_number = true,
                       .share = all == 0 ? 0 : 0.85 * static_cast<double>(count) / all,
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
  std::ranges::stable_sort(pairs, std::greater{}, &Pair::count);
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
  std::vector<Picture> pictures;
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
    std::vector<Picture> pictures;
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
  std::vector<Row> rows;
  for (const LayerTimes& layer : layers) {
    Row row{{.text = layer.path},
            {.text = layer.type + "(" + layer.options + ")"},
            {.text = to_string(layer.output)},
            {.text = grouped(layer.parameters), .is_number = true}};
    const auto& times = layer.milliseconds;
    for (const std::string& name : implementations) {
      Cell& cell = row.emplace_back(Cell{.is_number = true});
      const auto found = times.find(name);
      if (found == times.end()) continue;
      cell.text = fmt::format("{:.3g}", found->second);
      cell.strong = std::ranges::none_of(times, [&](const auto& one) { return one.second < found->second; });
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
  std::vector<Row> rows;
  for (const auto& [name, value] : report.options) rows.push_back({{.text = name}, {.text = value}});
  rows.push_back({{.text = "Pleat"}, {.text = fmt::format("{}, compiled by {}", PLEAT_VERSION, compiler)}});
  rows.push_back({{.text = "machine"}, {.text = machine_of(device)}});
  rows.push_back({{.text = "written"}, {.text = today()}});
  page.table({"option", "value"}, rows);
  write_file("write_report", file, page.document());
}

}  // namespace pleat::train
