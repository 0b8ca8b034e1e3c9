#pragma once

#include <string>

#include "pleat/bench/ask/words.h"
#include "pleat/bench/plot/plot.h"

namespace pleat::bench::ask {

/// Adds a bar in milliseconds, with quartiles, to the group and series of these names, which are made when
/// they are not there yet.
void add_bar(plot::BarChart& chart, const std::string& group, const std::string& series, const Time& time);

/// Adds a point in milliseconds to the line of that name, which is made when it is not there yet.
void add_point(plot::LineChart& chart, const std::string& series, double x, const Time& time);

}  // namespace pleat::bench::ask
