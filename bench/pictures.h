#pragma once

#include <string>
#include <vector>

#include "pleat/bench/record.h"

/// Pictures of records, for --plot. All throw UsageError when no record has what they draw.

namespace pleat::bench {

/// "Convolution: direct, float32": the title, and what of these labels is the same in all records.
std::string with_common_labels(const std::string& title, const std::vector<Record>& records,
                               const std::vector<std::string>& labels);

/// Median times with their quartiles: a group for each label `problem` (and the labels in `also_by`), a
/// series for each combination of the labels `series`. Records that failed say so.
std::string time_bars(const std::string& title, const std::vector<Record>& records,
                      const std::vector<std::string>& series, const std::vector<std::string>& also_by = {});

/// Records' gflops over their intensity, under the measured ceilings of the device that the records name (the
/// label device, else the CPU); colours by the label `series`.
std::string roofline(const std::string& title, const std::vector<Record>& records, const std::string& series);

/// A value against another; a line for each combination of the labels `series`.
struct LinesOptions {
  std::string title;
  std::string x_value;  ///< name of a value of the records
  std::string x_axis;
  std::vector<std::string> series;
};
/// Median times over `x_value`, both axes logarithmic.
std::string time_lines(const LinesOptions& options, const std::vector<Record>& records);

}  // namespace pleat::bench
