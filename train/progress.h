#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace pleat::train {

/// Shows the progress of an epoch as a bar on a terminal, as wide as the terminal at the moment.
/// Prints nothing to a file.
class ProgressBar {
 public:
  /// `total` steps, of which `first` were done before; `label` is printed before the bar.
  ProgressBar(std::string label, int64_t total, int64_t first = 0);
  /// Removes the bar.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Whether `update` would draw now; a caller can skip costly notes otherwise.
  bool is_due(int64_t done) const;
  /// Draws the bar for `done` steps, then as many notes as fit, then the time left.
  void update(int64_t done, const std::vector<std::string>& notes);
  double seconds() const;

 private:
  std::string label_;
  int64_t total_, first_;
  bool terminal_;
  bool drawn_anything_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace pleat::train
