#pragma once

#include <string>
#include <vector>

#include "pleat/bench/ask/words.h"
#include "pleat/core/base/device.h"
#include "pleat/profile/timer.h"

/// What the command `pleat-bench ask` gives for a question, and how it is shown.

namespace pleat::bench::ask {

struct AskOptions {
  Device device = {};
  bool quick = false;  ///< sizes and times for a first look
  benchmark::TimerOptions timer = {};
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< the first cell names the row
};

/// A time, and of what it is.
struct Timed {
  std::string what;
  Time time;
};

struct Answer {
  std::vector<std::string> setup = {};  ///< what was computed on what, a line each
  std::vector<Table> tables = {};
  std::string profile = {};                  ///< a table of the profiler, where the question needs one
  std::vector<std::string> conclusion = {};  ///< sentences that follow from the numbers
  std::string plot = {};                     ///< a picture of them, as SVG
  std::vector<Timed> times = {};             ///< every measurement behind it
};

/// The answer as text for a terminal, lines of about 100 characters but for tables.
std::string text(const Answer& answer);
/// A table with aligned columns, numbers to the right. Throws ValueError when a row has more or fewer cells
/// than there are columns.
std::string text(const Table& table);
/// A sentence broken at spaces; the first line begins with `first`, further ones with as many spaces.
std::string wrapped(const std::string& sentence, const std::string& first = {});

}  // namespace pleat::bench::ask
