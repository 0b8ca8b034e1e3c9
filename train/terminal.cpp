#include "pleat/train/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pleat::train {
namespace {

constexpr int longest_bar = 24;
constexpr int shortest_bar = 6;

int size(const std::string& text) { return static_cast<int>(text.size()); }

std::string right(const std::string& text, int width) {
  return std::string(static_cast<std::size_t>(std::max(0, width - size(text))), ' ') + text;
}

}  // namespace

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 1e6 ? "%.*f" : "%.*e", digits, value);
  return text;
}

std::string general(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::vector<std::size_t> LineTable::fitting(int width) const {
  std::vector<std::size_t> shown;
  int used = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    shown.push_back(c);
    used += (c == 0 ? 0 : 2) + std::max(columns_[c].width, size(columns_[c].title));
  }
  // The last place of a line stays free: some terminals go on to the next one there.
  while (width > 0 && used >= width && shown.size() > 1) {
    const auto least = std::min_element(shown.begin(), shown.end(), [&](std::size_t a, std::size_t b) {
      return columns_[a].importance < columns_[b].importance;
    });
    used -= 2 + std::max(columns_[*least].width, size(columns_[*least].title));
    shown.erase(least);
  }
  return shown;
}

std::string LineTable::line(const std::vector<std::string>& cells, int width) {
  const std::vector<std::size_t> shown = fitting(width);
  std::string titles, values;
  for (const std::size_t c : shown) {
    const int own = std::max(columns_[c].width, size(columns_[c].title));
    titles += (titles.empty() ? "" : "  ") + right(columns_[c].title, own);
    values += (values.empty() ? "" : "  ") + right(cells[c], own);
  }
  const bool same = shown == shown_;
  shown_ = shown;
  return (same ? "" : titles + '\n') + values + '\n';
}

std::string progress_line(const std::string& label, double share, const std::vector<std::string>& notes,
                          const std::string& left, int width) {
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(100 * std::clamp(share, 0.0, 1.0)));
  // The last place of a line stays free: some terminals go on to the next one there.
  int room = width - 1 - size(percent);
  if (room < 1) return "";
  const std::string name = label.substr(0, static_cast<std::size_t>(std::max(0, room - 1)));
  room -= size(name) + 1;
  const auto fits = [&](const std::string& text, int reserve) {
    const bool fit = 2 + size(text) + reserve <= room;
    if (fit) room -= 2 + size(text);
    return fit ? "  " + text : std::string();
  };
  const std::string end = fits(left, 0);
  std::string middle;
  for (const std::string& note : notes) {
    const std::string text = fits(note, 0);
    if (text.empty()) break;
    middle += text;
  }
  const int length = std::min(longest_bar, room - 3);
  std::string bar;
  if (length >= shortest_bar) {
    const auto all = static_cast<std::size_t>(length);
    bar.assign(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * length), '#');
    bar.resize(all, '.');
    bar = " [" + bar + "]";
  }
  return name + bar + ' ' + percent + middle + end;
}

}  // namespace pleat::train
