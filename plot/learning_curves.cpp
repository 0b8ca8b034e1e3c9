#include "pleat/plot/learning_curves.h"

#include <cmath>
#include <cstdio>

#include "pleat/core/files/atomic_file.h"
#include "pleat/plot/chart.h"

namespace pleat::plot {
namespace {

/// The line's name with its last value, over the epochs from 1 on.
void add(LineChart& chart, const Curve& curve) {
  std::string name = curve.name;
  if (!curve.values.empty()) {
    char last[400];
    std::snprintf(last, sizeof last, chart.percent ? " %.1f %%" : " %.3f",
                  (chart.percent ? 100 : 1) * curve.values.back());
    name += last;
  }
  double epoch = 0;
  for (const double value : curve.values) chart.add(name, {++epoch, value});
}

}  // namespace

void write_learning_curves(const std::filesystem::path& file, const std::string& title,
                           const std::vector<Curve>& losses, const std::vector<Curve>& accuracies) {
  LineChart loss{.title = "Loss", .x_axis = "epoch"};
  LineChart accuracy{.title = "Accuracy", .x_axis = "epoch", .percent = true};
  for (const Curve& curve : losses) add(loss, curve);
  for (const Curve& curve : accuracies) add(accuracy, curve);
  pleat::write_file("learning curves", file, to_svg(title, {loss, accuracy}));
}

}  // namespace pleat::plot
