#include "pleat/train/progress.h"

#include <cstdio>

#include <unistd.h>

#include "pleat/train/terminal.h"

namespace pleat::train {
namespace {

std::string time_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  char text[32];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", static_cast<long>(s / 3600),
                  static_cast<long>(s / 60 % 60), static_cast<long>(s % 60));
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", static_cast<long>(s / 60), static_cast<long>(s % 60));
  return text;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, int64_t total, int64_t first)
    : label_(std::move(label)),
      total_(total),
      first_(first),
      terminal_(terminal_width(STDERR_FILENO) > 0),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() {
  if (drawn_anything_) std::fputs("\r\033[K", stderr);
}

double ProgressBar::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool ProgressBar::is_due(int64_t done) const {
  return terminal_ &&
         (done >= total_ || std::chrono::steady_clock::now() - drawn_ >= std::chrono::milliseconds(100));
}

void ProgressBar::update(int64_t done, const std::vector<std::string>& notes) {
  if (!is_due(done)) return;
  drawn_ = std::chrono::steady_clock::now();
  drawn_anything_ = true;
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  const int64_t here = done - first_;
  const double left =
      here <= 0 ? 0 : seconds() / static_cast<double>(here) * static_cast<double>(total_ - done);
  const std::string line =
      progress_line(label_, share, notes, time_text(left) + " left", terminal_width(STDERR_FILENO));
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
}

}  // namespace pleat::train
