#pragma once

#include <string>
#include <vector>

#include "pleat/bench/record.h"

namespace pleat::bench {

/// Times of conv's records as an SVG: a bar for each implementation, grouped by problem and pass; or, where
/// problems differ in nothing but the batch, a line for each implementation and pass over the batch size.
/// Throws UsageError when there is no time among them.
std::string conv_plot(const std::vector<Record>& records);

}  // namespace pleat::bench
