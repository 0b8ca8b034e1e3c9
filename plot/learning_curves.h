#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pleat::plot {

/// One line of a plot: a value for each epoch.
struct Curve {
  std::string name;
  std::vector<double> values;
};

/// Draws loss and accuracy over the epochs, side by side, as an SVG that reads well on light and dark
/// backgrounds. Accuracies are shares, shown in percent. Throws pleat::FileError when the file cannot be
/// written.
void write_learning_curves(const std::filesystem::path& file, const std::string& title,
                           const std::vector<Curve>& losses, const std::vector<Curve>& accuracies);

}  // namespace pleat::plot
