#pragma once

#include <string>
#include <vector>

#include "pleat/bench/ceilings.h"
#include "pleat/bench/record.h"

namespace pleat::bench {

/// Times of conv's records as an SVG: a bar for each implementation, grouped by problem and pass; or, where
/// problems differ in nothing but the batch, a line for each implementation and pass over the batch size.
/// Throws UsageError when there is no time among them.
std::string time_plot(const std::vector<Record>& records);

/// The same records under the machine's ceilings: operations per second (padding not counted) over operations
/// per byte.
std::string roofline_plot(const std::vector<Record>& records, const Ceilings& ceilings);

}  // namespace pleat::bench
