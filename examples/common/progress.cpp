#include "progress.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

namespace {

constexpr int bar_width = 24;

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

ProgressBar::ProgressBar(std::string label, int64_t total)
    : label_(std::move(label)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

double ProgressBar::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool ProgressBar::is_due(int64_t done) const {
  return terminal_ &&
         (done >= total_ || std::chrono::steady_clock::now() - drawn_ >= std::chrono::milliseconds(100));
}

void ProgressBar::update(int64_t done, const std::string& note) {
  if (!is_due(done)) return;
  drawn_ = std::chrono::steady_clock::now();
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(share * bar_width);
  std::string bar(filled, '#');
  bar.resize(bar_width, '.');
  const double left =
      done == 0 ? 0 : seconds() / static_cast<double>(done) * static_cast<double>(total_ - done);
  std::fprintf(stderr, "\r\033[K%s [%s] %3d%%  %s  %s left", label_.c_str(), bar.c_str(),
               static_cast<int>(share * 100), note.c_str(), time_text(left).c_str());
}
