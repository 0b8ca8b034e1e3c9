#include "pleat/train/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "pleat/core/base/format.h"
#include "pleat/core/base/text_table.h"
#include "pleat/train/clock.h"

namespace pleat::train {
namespace {

std::string time_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

std::string number(double value, int digits) {
  return std::abs(value) < 1e6 ? fmt::format("{:.{}f}", value, digits)
                               : fmt::format("{:.{}e}", value, digits);
}

std::string general(double value, int digits) { return fmt::format("{:.{}g}", value, digits); }

std::string LineTable::line(const std::vector<std::string>& cells, int width) {
  const int greatest = std::ranges::max(columns_, {}, &Column::importance).importance;
  std::vector<TextTable::Column> layout;
  std::vector<std::string> titles;
  for (const auto& [title, least, importance] : columns_) {
    layout.push_back(
        {.least = static_cast<std::size_t>(least), .importance = importance == greatest ? 0 : importance});
    titles.push_back(title);
  }
  TextTable table(layout);
  table.add(titles);
  table.add(cells);
  std::vector<std::string> left_out;
  // The last place of a line stays free: some terminals go on to the next one there.
  if (width > 0) left_out = table.fit(static_cast<std::size_t>(width - 1));
  std::string text = table.text();
  if (left_out_ == left_out) text.erase(0, text.find('\n') + 1);
  left_out_ = std::move(left_out);
  return text;
}

std::string progress_line(const std::string& label, double share, const std::vector<std::string>& notes,
                          const std::string& left, int width) {
  constexpr int longest_bar = 24, shortest_bar = 6;
  const auto size = [](const std::string& text) { return static_cast<int>(text.size()); };
  share = std::clamp(share, 0.0, 1.0);
  const std::string percent = fmt::format("{:3}%", static_cast<int>(100 * share));
  // The last place of a line stays free: some terminals go on to the next one there.
  int room = width - 1 - size(percent);
  if (room < 1) return "";
  const std::string name = label.substr(0, static_cast<std::size_t>(std::max(0, room - 1)));
  room -= size(name) + 1;
  const auto if_it_fits = [&](const std::string& text) {
    const bool fits = 2 + size(text) <= room;
    if (fits) room -= 2 + size(text);
    return fits ? "  " + text : std::string();
  };
  const std::string end = if_it_fits(left);
  std::string middle;
  for (const std::string& note : notes) {
    const std::string text = if_it_fits(note);
    if (text.empty()) break;
    middle += text;
  }
  std::string bar;
  if (const int length = std::min(longest_bar, room - 3); length >= shortest_bar) {
    bar.assign(static_cast<std::size_t>(share * length), '#');
    bar.resize(static_cast<std::size_t>(length), '.');
    bar = " [" + bar + "]";
  }
  return name + bar + ' ' + percent + middle + end;
}

ProgressBar::ProgressBar(std::string label, int64_t total, int64_t first)
    : label_(std::move(label)), total_(total), first_(first), start_(now()), drawn_(start_) {}

ProgressBar::~ProgressBar() {
  if (drawn_anything_) std::fputs("\r\033[K", stderr);
}

double ProgressBar::seconds() const { return now() - start_; }

bool ProgressBar::is_due(int64_t done) const {
  return terminal_ && (done >= total_ || now() - drawn_ >= 0.1);
}

void ProgressBar::update(int64_t done, const std::vector<std::string>& notes) {
  if (!is_due(done)) return;
  drawn_ = now();
  drawn_anything_ = true;
  const double share = total_ == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total_);
  const int64_t here = done - first_;
  const double left =
      here <= 0 ? 0 : seconds() / static_cast<double>(here) * static_cast<double>(total_ - done);
  const std::string line = progress_line(label_, share, notes, time_text(left) + " left", terminal_width(2));
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
}

}  // namespace pleat::train
