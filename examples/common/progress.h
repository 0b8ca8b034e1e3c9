#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

/// Shows how far an epoch is: a bar that is drawn over and over on a terminal, as wide as that is at the
/// moment; nothing at all in a file.
class ProgressBar {
 public:
  /// `total` steps; `label` stands before the bar.
  ProgressBar(std::string label, int64_t total);
  /// Takes the bar away.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Whether `update` would draw now: who finds notes costly need not make them otherwise.
  bool is_due(int64_t done) const;
  /// `done` steps are behind; the notes stand after the bar, as many as fit, then the time left.
  void update(int64_t done, const std::vector<std::string>& notes);
  double seconds() const;

 private:
  std::string label_;
  int64_t total_;
  bool terminal_;
  bool drawn_anything_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
};
