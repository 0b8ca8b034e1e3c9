#pragma once

#include <string>
#include <vector>

#include "pleat/bench/machine.h"
#include "pleat/bench/record.h"
#include "pleat/examples/common/chart.h"

/// Charts of records, for --plot. All throw UsageError when no record has what they draw.

namespace pleat::bench {

/// "Convolution: direct, float32": the title, and what of these labels is the same in all records.
std::string with_common_labels(const std::string& title, const std::vector<Record>& records,
                               const std::vector<std::string>& labels);

/// Median times with their quartiles: a group for each label `problem` (and the labels in `also_by`), a
/// series for each combination of the labels `series`. Records that failed say so.
std::string time_bars(const std::string& title, const std::vector<Record>& records,
                      const std::vector<std::string>& series, const std::vector<std::string>& also_by = {});

/// Median times over the value `x_value`, both axes logarithmic; a line for each combination of the labels
/// `series`.
struct LinesOptions {
  std::string title;
  std::string x_value;
  std::string x_axis;
  std::vector<std::string> series;
};
std::string time_lines(const LinesOptions& options, const std::vector<Record>& records);

/// Records' operations per second over operations per byte (without those on padding, where the record has
/// the value flops_valid) under the machine's ceilings; colours by the label `series`.
std::string roofline(const std::string& title, const std::string& note, const std::vector<Record>& records,
                     const std::string& series, const Ceilings& ceilings);

/// A time as a bar in a unit of so many seconds, with a whisker for the quartiles.
chart::Bar bar(const Time& time, double unit);

}  // namespace pleat::bench
