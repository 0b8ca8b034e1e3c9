#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "pleat/data/synthetic_shapes.h"
#include "pleat/tests/examples/run_example.h"
#include "pleat/tests/temporary_directory.h"

namespace pleat_test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A small set of images, and how train_cifar is told to train on it for a moment.
class Training {
 public:
  Training() { pleat::data::write_synthetic_shapes(directory_ / "set", {.train = 120, .test = 40}); }

  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all;
    const auto add = [&](const std::string& option, const std::string& value) {
      if (std::find(more.begin(), more.end(), option) == more.end()) all.insert(all.end(), {option, value});
    };
    add("--data", (directory_ / "set").string());
    add("--output", output().string());
    add("--device", "cpu");
    add("--threads", "1");
    add("--epochs", "1");
    add("--batch-size", "40");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ExampleOutcome run(const std::vector<std::string>& more = {}, const ExampleOptions& options = {}) const {
    return run_example("train_cifar", arguments(more), options);
  }

  std::filesystem::path output() const { return directory_ / "out"; }
  std::filesystem::path operator/(const std::string& name) const { return directory_ / name; }
  std::vector<std::string> results() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(output()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  TemporaryDirectory directory_;
};

/// metrics.csv without its times, the last two columns.
inline std::string figures_of(const std::filesystem::path& run) {
  std::istringstream lines(read_text(run / "metrics.csv"));
  std::string figures;
  for (std::string line; std::getline(lines, line);) {
    for (int column = 0; column < 2; ++column) line.erase(line.rfind(','));
    figures += line + '\n';
  }
  return figures;
}

}  // namespace pleat_test
