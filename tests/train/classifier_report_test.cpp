#include "pleat/train/classifier_report.h"

#include <fstream>

#include "pleat/pleat.h"
#include "pleat/tests/catch.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat;
using namespace pleat_test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the layers of a network are timed by implementation", "[train]") {
  nn::Sequential net = models::small_cnn({.num_classes = 3, .image_size = 16});
  net.to(default_device());
  const auto layers = train::time_layers(net, randn({2, 3, 16, 16}), {.warmups = 0, .samples = 1});
  REQUIRE(layers.size() == 14);
  CHECK(layers[0].type == "Conv2d");
  CHECK(layers[0].path == "0");
  CHECK(layers[0].output == Shape{2, 32, 16, 16});
  CHECK(layers[0].parameters == 864);
  CHECK(layers[0].milliseconds.contains("unfold"));
  CHECK(layers[0].milliseconds.at("unfold") > 0);
  CHECK(layers[1].milliseconds.empty());
  CHECK(net.training());
}

TEST_CASE("a report is one file with everything inside", "[train]") {
  const TemporaryDirectory folder;
  manual_seed(1);
  train::Classifier classifier = train::make_classifier("small", {.num_classes = 3, .image_size = 16},
                                                        {"cat & dog", "<b>", "ü"}, {0, 0, 0}, {1, 1, 1});
  const data::TensorDataset images(randint(0, 256, {12, 3, 16, 16}).to(uint8), remainder(arange(12), 3));
  data::DataLoader loader(images, {.transforms = {classifier.normalization()}, .device = default_device()});
  train::MetricLog log(folder / "metrics.csv");
  for (int epoch = 1; epoch <= 3; ++epoch)
    log.add({{"epoch", epoch}, {"train_loss", 1.0 / epoch}, {"test_accuracy", 0.1 * epoch}});
  train::ClassifierReport report{.title = "a <run>",
                                 .command = "train --data \"a&b\"",
                                 .options = {{"lr", "0.1"}},
                                 .log = &log,
                                 .predictions = train::predict_classes(classifier.net, loader),
                                 .images = &images,
                                 .layers = {{.path = "0",
                                             .type = "Conv2d",
                                             .options = "3, 32",
                                             .output = {1, 32},
                                             .parameters = 12345,
                                             .milliseconds = {{"direct", 1.5}, {"unfold", 2.5}}}}};
  train::write_report(folder / "report.html", classifier, report);
  const auto bytes = read_bytes(folder / "report.html");
  const std::string page(bytes.begin(), bytes.end());
  const std::size_t wrong = report.predictions.worst(100).size();
  CHECK(wrong > 0);
  CHECK(count(page, "<figure") == wrong + 32);  // mistakes and filters
  CHECK(count(page, "<svg") == 2);              // curves, classes
  CHECK(has(page, "<title>a &lt;run&gt;</title>"));
  CHECK(has(page, "cat &amp; dog"));
  CHECK(has(page, "<figcaption>" + std::to_string(report.predictions.worst(1)[0].sample) + ": "));
  CHECK_FALSE(has(page, "<b>"));
  CHECK(has(page, "train --data &quot;a&amp;b&quot;"));
  CHECK(has(page, "<td class=\"number strong\">1.5</td><td class=\"number\">2.5</td>"));
  CHECK(has(page, "12,345"));
  for (const std::string tag : {"table", "div", "figure", "tr", "td", "svg", "h2"})
    CHECK(count(page, '<' + tag + '>') + count(page, '<' + tag + ' ') == count(page, "</" + tag + '>'));
  // Nothing is loaded from elsewhere.
  CHECK(count(page, "http") == count(page, "http://www.w3.org/2000/svg"));

  train::write_report(folder / "little.html", classifier, {.title = "little"});
  CHECK(read_bytes(folder / "little.html").size() > 1000);
}
