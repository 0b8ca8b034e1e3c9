// The small examples, each trained for some steps only: what they print of their result, and that it is a
// number.
#include <cmath>
#include <regex>

#include "pleat/tests/catch.h"
#include "pleat/tests/examples/run_example.h"
#include "pleat/tests/temporary_directory.h"

using namespace pleat_test;

namespace {

/// What the last match of a pattern with one group has found in a text, as a number; NaN for none.
double last_number(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  double number = NAN;
  for (auto i = std::sregex_iterator(text.begin(), text.end(), expression); i != std::sregex_iterator(); ++i)
    number = std::stod((*i)[1]);
  return number;
}

}  // namespace

TEST_CASE("the small examples train and print their result", "[examples][programs]") {
  struct Case {
    std::string program, steps, result;
    double least, most;  ///< after these steps
  };
  const auto c = GENERATE(values<Case>({
      {"char_transformer", "5", "right sums: ([0-9.]+)\n$", 0, 1},
      {"csv_regression", "500", "network: test error ([0-9.]+)", 0.5, 2},
      {"dcgan", "2", "roundness ([0-9.]+)\n$", 0, 1.05},
      {"denoising_autoencoder", "30", "denoised test pictures ([0-9.]+) dB", 11, 30},
      {"lstm_adding", "5", "test error ([0-9.]+)", 0, 1},
      {"unet_segmentation", "5", "test mean IoU ([0-9.]+)", 0, 1},
      {"wavenet", "20", "test ([0-9.]+) nats", 0, 4.16},
      {"fine_tuning", "4", "fine-tuned: test accuracy ([0-9.]+)", 0, 1},
  }));
  CAPTURE(c.program);
  const ExampleOutcome outcome = run_example(c.program, {"--steps", c.steps});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  const double result = last_number(outcome.out, c.result);
  CHECK(result >= c.least);
  CHECK(result <= c.most);
}

TEST_CASE("dcgan writes a sheet of pictures, csv_regression reads a table", "[examples][programs]") {
  const TemporaryDirectory folder;
  const std::string sheet = (folder / "sheet.png").string();
  CHECK(run_example("dcgan", {"--steps", "1", "--output", sheet}).status == 0);
  CHECK(std::filesystem::file_size(sheet) > 1000);

  const std::string table = (folder / "table.csv").string();
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i) + ',' + std::to_string(i % 7) + ',' + std::to_string(2 * i - i % 7) + '\n';
  write_bytes(table, text);
  const ExampleOutcome outcome = run_example("csv_regression", {"--steps", "2000", "--data", table});
  CHECK(outcome.status == 0);
  CHECK(last_number(outcome.out, "linear model: test error ([0-9.]+)") < 5);

  write_bytes(table, text + "1,x,3\n");
  const ExampleOutcome wrong = run_example("csv_regression", {"--data", table});
  CHECK(wrong.status == 1);
  CHECK(wrong.err.find("column 'b' of '" + table + "' is text: line 42 has 'x'") != std::string::npos);
}
