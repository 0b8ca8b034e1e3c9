#pragma once

#include <string>
#include <vector>

#include "pleat/bench/machine.h"
#include "pleat/bench/record.h"
#include "pleat/plot/chart.h"

/// Charts of records, for --plot. All throw UsageError when no record has what they draw.

namespace pleat::bench {

/// Median times. What of the labels is the same in all records stands in the title; the others tell apart.
struct TimeChart {
  std::string title;
  std::vector<std::string> series;                ///< labels of lines, or of the bars of a group
  std::vector<std::string> groups = {"problem"};  ///< labels of groups of bars
  std::string x_value = {};                       ///< of lines: which value, and the axis' title
  std::string x_axis = x_value;
};

/// With their quartiles. Records that failed say so.
std::string time_bars(const TimeChart& chart, const std::vector<Record>& records);
/// Over a value, both axes logarithmic.
std::string time_lines(const TimeChart& chart, const std::vector<Record>& records);

/// Records' operations per second over operations per byte (without those on padding, where the record has
/// the value flops_valid) under the machine's ceilings; colours by the label `series`.
std::string roofline(const std::string& title, const std::string& note, const std::vector<Record>& records,
                     const std::string& series, const Ceilings& ceilings);

}  // namespace pleat::bench
