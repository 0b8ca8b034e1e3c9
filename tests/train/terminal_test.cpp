#include <sstream>

#include "pleat/tests/catch.h"
#include "pleat/train/progress.h"

using namespace pleat::train;

namespace {
LineTable figures() { return LineTable({{"epoch", 5, 3}, {"loss", 8, 1}, {"accuracy", 8, 2}}); }
const std::vector<std::string> cells{"1", "0.25", "97.5%"};
}  // namespace

TEST_CASE("a progress line is shorter than any terminal", "[train]") {
  const std::vector<std::string> notes{"loss 0.123", "accuracy 98.7 %", "12345 images/s"};
  std::size_t before = 0;
  for (int width = 1; width <= 300; ++width)
    for (const double share : {0.0, 0.421, 1.0, 7.0}) {
      CAPTURE(width, share);
      const std::string line = progress_line("epoch 100/100", share, notes, "1:02:03 left", width);
      CHECK(line.size() < static_cast<std::size_t>(width));
      if (share == 0.421 && width >= 6) CHECK(line.find("42%") != std::string::npos);
      if (share == 0.421) CHECK(line.size() + 30 >= before);  // room is used
      if (share == 0.421) before = line.size();
    }
  CHECK(progress_line("epoch 1/2", 0.5, notes, "0:12 left", 200) ==
        "epoch 1/2 [############............]  50%  loss 0.123  accuracy 98.7 %  12345 images/s  0:12 left");
  CHECK(progress_line("epoch 1/2", 0.5, notes, "0:12 left", 20) == "epoch 1/2  50%");
}

TEST_CASE("a table leaves out what does not fit, the least important first", "[train]") {
  LineTable table = figures();
  CHECK(table.line(cells, 0) == "epoch      loss  accuracy\n    1      0.25     97.5%\n");
  CHECK(table.line(cells, 0) == "    1      0.25     97.5%\n");
  CHECK(table.line(cells, 26) == "    1      0.25     97.5%\n");
  // The titles come again when the terminal has become narrower.
  CHECK(table.line(cells, 25) == "epoch  accuracy\n    1     97.5%\n");
  CHECK(table.line(cells, 6) == "epoch\n    1\n");
  for (int width = 6; width <= 300; ++width) {
    std::istringstream lines(figures().line(cells, width));
    for (std::string line; std::getline(lines, line);) CHECK(line.size() < static_cast<std::size_t>(width));
  }
}

TEST_CASE("numbers fit their columns", "[train]") {
  CHECK(number(0.12345, 3) == "0.123");
  CHECK(number(-2, 1) == "-2.0");
  CHECK(number(1e30, 3) == "1.000e+30");
  CHECK(general(1e-5, 3) == "1e-05");
}
